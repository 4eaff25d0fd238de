// What notes ask for is done by the thread, one after the other, so shards need no lock; what rank
// 0 decides goes the same way, so that a shard is handed over after all steps that came before.
//
// A fetch is repeated until it is answered: an owner that is lost does not answer, and one that has
// not been given its shard yet drops what it is asked. A gradient that comes to the wrong rank is
// handed on by rank 0 and dropped by others.
#include "learn/controllers/shards.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <numeric>
#include <utility>

#include "base/error.h"

#include "learn/nn/optimizer_parts.h"
#include "learn/nn/single_thread.h"
#include "learn/nn/tensor_messages.h"
#include "learn/train/state.h"

namespace emplace::learn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenBackups = std::chrono::seconds(1);
constexpr auto kAskAgain = std::chrono::milliseconds(500);
constexpr auto kGlance = std::chrono::milliseconds(20);
constexpr const char* kWhat = "shard";

// The largest first, each to the shard with the least so far.
std::vector<std::vector<std::size_t>> divide(const std::vector<torch::Tensor>& tensors,
                                             std::size_t shards) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensors[a].numel() > tensors[b].numel();
  });
  std::vector<std::vector<std::size_t>> parts(shards);
  std::vector<std::int64_t> sizes(shards, 0);
  for (const std::size_t tensor : order) {
    const auto least = std::min_element(sizes.begin(), sizes.end());
    *least += tensors[tensor].numel();
    parts[static_cast<std::size_t>(least - sizes.begin())].push_back(tensor);
  }
  return parts;
}

}  // namespace

ParameterShards::ParameterShards(dist::Notes& notes, std::uint64_t run, std::size_t shards,
                                 const Parameters& like, const OptimizerSettings& steps)
    : notes_(notes), run_(run), steps_(steps), like_(like.values()) {
  // Gradients are clipped by whoever found them, who has all of each.
  steps_.clip_norm = steps_.part.clip_norm = 0;
  for (const auto& [name, tensor] : like.named()) names_.push_back(name);
  shards = std::min(like_.size(), shards);
  tensors_of_ = divide(like_, shards);
  owners_.assign(shards, 0);
  backups_.resize(shards);
  thread_ = std::thread([this] { work(); });
  notes_.on_notes(dist::Topic::kShards, [this](int from, dist::Reader& body) { hear(from, body); });
}

ParameterShards::~ParameterShards() {
  notes_.on_notes(dist::Topic::kShards, {});
  if (is_first()) {
    for (int rank = 1; rank < notes_.size(); ++rank)
      notes_.note(rank, dist::Topic::kShards, word(Word::kOver, 0).take());
  }
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::vector<std::int32_t> ParameterShards::owners() const {
  const std::lock_guard lock(mutex_);
  return owners_;
}

std::int64_t ParameterShards::steps_taken() const {
  const std::lock_guard lock(mutex_);
  return steps_taken_;
}

void ParameterShards::work() {
  const SingleThread single_thread;
  Clock::time_point backed_up = Clock::now();
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kBetweenBackups, [&] { return closing_ || !queue_.empty(); });
      if (closing_) return;
      if (!queue_.empty()) {
        task = std::move(queue_.front());
        queue_.pop_front();
      }
    }
    try {
      if (task) task();
      if (!is_first() && Clock::now() - backed_up > kBetweenBackups) {
        backed_up = Clock::now();
        back_up();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      changed_.notify_all();
    }
  }
}

void ParameterShards::enqueue(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(task));
  changed_.notify_all();
}

dist::Writer ParameterShards::word(Word kind, std::size_t shard) const {
  dist::Writer writer;
  writer.number(run_).number(static_cast<std::uint8_t>(kind)).number<std::uint64_t>(shard);
  return writer;
}

// To itself, too.
void ParameterShards::say(int to, dist::Writer& writer) {
  const std::string body = writer.take();
  if (to != notes_.rank()) return notes_.note(to, dist::Topic::kShards, body);
  dist::Reader reader(body);
  hear(to, reader);
}

void ParameterShards::hear(int from, dist::Reader& body) {
  const std::string_view whole = body.rest();
  if (body.number<std::uint64_t>() != run_) return;  // of a run that is over
  const auto kind = static_cast<Word>(body.number<std::uint8_t>());
  const auto shard = static_cast<std::size_t>(body.number<std::uint64_t>());
  if (shard >= tensors_of_.size()) fail_input("it speaks of shard {}", shard);
  const auto forward = [this, shard, note = std::string(whole)] {
    // It was here when this was sent.
    if (!is_first()) return;
    const int owner = owners()[shard];
    if (owner != 0) notes_.note(owner, dist::Topic::kShards, note);
  };
  switch (kind) {
    case Word::kFetch: {
      const auto ticket = body.number<std::uint64_t>();
      const auto requester = body.number<std::int32_t>();
      if (requester < 0 || requester >= notes_.size()) fail_input("rank {} asks", requester);
      return enqueue([=, this] {
        if (!own_.contains(shard)) return forward();
        answer(shard, ticket, requester);
      });
    }
    case Word::kPush: {
      const auto epoch = body.number<std::uint64_t>();
      return enqueue([=, this, gradient = std::string(body.rest())] {
        if (!own_.contains(shard)) return forward();
        step(shard, epoch, gradient);
      });
    }
    case Word::kValues: {
      const auto ticket = body.number<std::uint64_t>();
      const auto epoch = body.number<std::uint64_t>();
      return deliver(shard, ticket, epoch, body);
    }
    case Word::kAdopt:
      if (from != 0) fail_input("it hands a shard over, which is rank 0's to do");
      return enqueue([=, this, state = std::string(body.rest())] { adopt(shard, state); });
    case Word::kOver:
      if (from != 0) fail_input("it ends a run, which is rank 0's to do");
      return enqueue([this] { own_.clear(); });
    case Word::kBackup: {
      std::string bytes(body.rest());
      const auto epoch = checked_epoch(shard, bytes);
      const std::lock_guard lock(mutex_);
      if (is_first() && owners_[shard] == from && epoch == epoch_) {
        backups_[shard] = std::move(bytes);
      }
      return;
    }
  }
  fail_input("it sent a note of kind {}", static_cast<int>(kind));
}

// Whoever sends nonsense is lost.
std::uint64_t ParameterShards::checked_epoch(std::size_t shard, const std::string& bytes) const {
  const StateReader state(bytes, "a shard", kWhat);
  const std::int64_t epoch = state.count("epoch");
  for (const std::size_t tensor : tensors_of_[shard]) {
    if (state.tensor("values." + names_[tensor]).sizes() != like_[tensor].sizes()) {
      fail_input("'{}' of shard {} has another shape", names_[tensor], shard);
    }
  }
  return static_cast<std::uint64_t>(epoch);
}

std::vector<torch::Tensor> ParameterShards::part_of(std::size_t shard,
                                                    const std::vector<torch::Tensor>& all) const {
  std::vector<torch::Tensor> part;
  for (const std::size_t tensor : tensors_of_[shard]) part.push_back(all[tensor]);
  return part;
}

std::unique_ptr<ParameterShards::Shard> ParameterShards::make_shard(std::size_t shard) const {
  auto made = std::make_unique<Shard>();
  for (const std::size_t tensor : tensors_of_[shard]) {
    made->parameters.constant(names_[tensor], like_[tensor].sizes().vec(), 0);
  }
  made->optimizer = std::make_unique<Optimizer>(steps_);
  return made;
}

std::string ParameterShards::state_of(const Shard& shard) const {
  StateWriter state;
  state.put("epoch", static_cast<std::int64_t>(shard.epoch));
  state.put("version", static_cast<std::int64_t>(shard.version));
  for (const auto& [name, tensor] : shard.parameters.named()) state.put("values." + name, tensor);
  shard.optimizer->save(state, "optimizer");
  return state.bytes(kWhat);
}

void ParameterShards::adopt(std::size_t shard, const std::string& bytes) {
  const StateReader state(bytes, "a shard", kWhat);
  auto adopted = make_shard(shard);
  adopted->epoch = static_cast<std::uint64_t>(state.count("epoch"));
  adopted->version = adopted->told = static_cast<std::uint64_t>(state.count("version"));
  for (const auto& [name, tensor] : adopted->parameters.named()) {
    state.load("values." + name, tensor);
  }
  adopted->optimizer->load(state, "optimizer", adopted->parameters.device());
  own_[shard] = std::move(adopted);
}

void ParameterShards::answer(std::size_t shard, std::uint64_t ticket, int requester) {
  const Shard& own = *own_.at(shard);
  dist::Writer writer = word(Word::kValues, shard);
  writer.number(ticket).number(own.epoch);
  put_tensors(writer, own.parameters.tensors());
  say(requester, writer);
}

void ParameterShards::step(std::size_t shard, std::uint64_t epoch, const std::string& bytes) {
  Shard& own = *own_.at(shard);
  if (own.epoch != epoch) return;  // the policy has begun anew since
  std::vector<torch::Tensor> gradients;
  try {
    dist::Reader reader(bytes);
    gradients = take_tensors(reader, own.parameters.tensors());
  } catch (const Error&) {
    return;
  }
  own.optimizer->step(own.parameters, gradients);
  ++own.version;
  const std::lock_guard lock(mutex_);
  ++steps_taken_;
}

void ParameterShards::back_up() {
  for (auto& [shard, own] : own_) {
    if (own->version == own->told) continue;
    own->told = own->version;
    notes_.note(0, dist::Topic::kShards, word(Word::kBackup, shard).take() + state_of(*own));
  }
}

void ParameterShards::begin(const Parameters& values, std::uint64_t epoch, const Optimizer& steps) {
  const std::vector<torch::Tensor> all = values.values();
  StateWriter writer;
  steps.save(writer, "optimizer");
  const std::string bytes = writer.bytes(kWhat);
  const StateReader whole(bytes, "an optimizer", kWhat);
  std::vector<std::string> states;
  for (std::size_t shard = 0; shard < tensors_of_.size(); ++shard) {
    const auto made = make_shard(shard);
    made->epoch = epoch;
    made->parameters.assign(part_of(shard, all));
    StateWriter part;
    put_part(part, whole, "optimizer", tensors_of_[shard]);
    const std::string part_bytes = part.bytes(kWhat);
    made->optimizer->load(StateReader(part_bytes, "an optimizer", kWhat), "optimizer",
                          made->parameters.device());
    states.push_back(state_of(*made));
  }
  // After they were handed over, if they are about to be; all at once, for whoever saves them.
  enqueue([this, epoch, states = std::move(states)] {
    for (std::size_t shard = 0; shard < states.size(); ++shard) {
      int owner = 0;
      {
        const std::lock_guard lock(mutex_);
        epoch_ = epoch;
        backups_[shard] = states[shard];
        owner = owners_[shard];
      }
      if (owner == 0) {
        adopt(shard, states[shard]);
      } else {
        notes_.note(owner, dist::Topic::kShards, word(Word::kAdopt, shard).take() + states[shard]);
      }
    }
  });
}

std::uint64_t ParameterShards::save(StateWriter& state) {
  std::packaged_task<std::vector<std::string>()> collect([this] {
    std::vector<std::string> all;
    for (std::size_t shard = 0; shard < tensors_of_.size(); ++shard) {
      if (const auto own = own_.find(shard); own != own_.end()) {
        all.push_back(state_of(*own->second));
        continue;
      }
      const std::lock_guard lock(mutex_);
      all.push_back(backups_[shard]);
    }
    return all;
  });
  enqueue([&] { collect(); });
  const std::vector<std::string> states = collect.get_future().get();
  std::uint64_t epoch = 0;
  std::vector<std::unique_ptr<StateReader>> readers;
  std::vector<SavedPart> parts;
  for (std::size_t shard = 0; shard < states.size(); ++shard) {
    readers.push_back(std::make_unique<StateReader>(states[shard], "a shard", kWhat));
    const StateReader& part = *readers.back();
    epoch = std::max(epoch, static_cast<std::uint64_t>(part.integer("epoch")));
    parts.push_back({&part, &tensors_of_[shard]});
    for (const std::size_t tensor : tensors_of_[shard]) {
      state.put("policy." + names_[tensor], part.tensor("values." + names_[tensor]));
    }
  }
  put_whole(state, parts, "optimizer", like_);
  return epoch;
}

void ParameterShards::hand_over(std::size_t shard, int rank) {
  if (shard >= tensors_of_.size() || owners()[shard] != 0) return;
  enqueue([=, this] {
    const auto own = own_.find(shard);
    if (own == own_.end()) return;
    const std::string state = state_of(*own->second);
    // Before anybody hears of the new owner.
    notes_.note(rank, dist::Topic::kShards, word(Word::kAdopt, shard).take() + state);
    const std::lock_guard lock(mutex_);
    if (lost_.contains(rank)) return;
    backups_[shard] = state;
    owners_[shard] = rank;
    own_.erase(own);
  });
}

bool ParameterShards::take_back(int rank) {
  {
    const std::lock_guard lock(mutex_);
    lost_.insert(rank);
  }
  bool had_any = false;
  for (std::size_t shard = 0; shard < tensors_of_.size(); ++shard) {
    {
      const std::lock_guard lock(mutex_);
      if (owners_[shard] != rank) continue;
      owners_[shard] = 0;
      changed_.notify_all();
    }
    had_any = true;
    enqueue([shard, this] {
      if (own_.contains(shard)) return;  // it has begun anew since
      std::string state;
      {
        const std::lock_guard lock(mutex_);
        state = backups_[shard];
      }
      adopt(shard, state);
    });
  }
  return had_any;
}

void ParameterShards::set_owners(std::vector<std::int32_t> owners) {
  if (owners.size() != tensors_of_.size()) {
    fail_input("there are {} shards; expected {}", owners.size(), tensors_of_.size());
  }
  for (const std::int32_t owner : owners) {
    if (owner < 0 || owner >= notes_.size()) fail_input("rank {} owns a shard", owner);
  }
  const std::lock_guard lock(mutex_);
  owners_ = std::move(owners);
  changed_.notify_all();
}

void ParameterShards::ask(std::size_t shard, std::uint64_t ticket, int of) {
  dist::Writer writer = word(Word::kFetch, shard);
  writer.number(ticket).number<std::int32_t>(notes_.rank());
  say(of, writer);
}

std::vector<std::uint64_t> ParameterShards::fetch(Parameters& into,
                                                  const std::function<void()>& wait) {
  const std::size_t shards = tensors_of_.size();
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++fetching_.ticket;
    fetching_.epochs.assign(shards, std::nullopt);
    fetching_.values.assign(shards, {});
  }
  std::vector<std::int32_t> asked_of = owners();
  for (std::size_t shard = 0; shard < shards; ++shard) ask(shard, ticket, asked_of[shard]);
  Clock::time_point asked = Clock::now();
  std::unique_lock lock(mutex_);
  const auto is_missing = [](const auto& epoch) { return !epoch.has_value(); };
  while (std::any_of(fetching_.epochs.begin(), fetching_.epochs.end(), is_missing)) {
    changed_.wait_for(lock, kGlance);
    std::vector<std::size_t> missing;
    const bool late = Clock::now() - asked > kAskAgain;
    for (std::size_t shard = 0; shard < shards; ++shard) {
      const bool moved = asked_of[shard] != owners_[shard];
      if (is_missing(fetching_.epochs[shard]) && (late || moved)) missing.push_back(shard);
    }
    asked_of = owners_;
    if (late) asked = Clock::now();
    if (failure_) std::rethrow_exception(failure_);
    lock.unlock();
    wait();
    // Whoever does not answer may be gone, without this rank having heard of it: rank 0 knows.
    for (const std::size_t shard : missing) ask(shard, ticket, late ? 0 : asked_of[shard]);
    lock.lock();
  }
  std::vector<torch::Tensor> all(like_.size());
  std::vector<std::uint64_t> epochs;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    epochs.push_back(*fetching_.epochs[shard]);
    for (std::size_t i = 0; i < tensors_of_[shard].size(); ++i) {
      all[tensors_of_[shard][i]] = fetching_.values[shard][i];
    }
  }
  into.assign(all);
  return epochs;
}

void ParameterShards::deliver(std::size_t shard, std::uint64_t ticket, std::uint64_t epoch,
                              dist::Reader& values) {
  std::vector<torch::Tensor> taken = take_tensors(values, part_of(shard, like_));
  const std::lock_guard lock(mutex_);
  if (ticket != fetching_.ticket || fetching_.epochs.empty()) return;  // it was asked again
  fetching_.epochs[shard] = epoch;
  fetching_.values[shard] = std::move(taken);
  changed_.notify_all();
}

void ParameterShards::push(const std::vector<std::uint64_t>& epochs,
                           const std::vector<torch::Tensor>& gradients) {
  const std::vector<std::int32_t> owners = this->owners();
  for (std::size_t shard = 0; shard < tensors_of_.size(); ++shard) {
    dist::Writer writer = word(Word::kPush, shard);
    writer.number(epochs[shard]);
    put_tensors(writer, part_of(shard, gradients));
    say(owners[shard], writer);
  }
}

}  // namespace emplace::learn
