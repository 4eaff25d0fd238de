#include "run/team_valuers.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/error.h"

namespace emplace {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

// For an answer, beside the time that it should take.
constexpr duration<double> kLeastPatience{0.1};
constexpr double kMorePatience = 3;
// Who has not answered is asked again, for what was asked before it listened is lost.
constexpr seconds kAskAgain{1};
constexpr milliseconds kGlance{20};

// Of this process: a late answer must not pass for one to another run's question.
std::uint64_t next_ticket() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::uint64_t ticket_of(std::string_view question) {
  return dist::Reader(question).number<std::uint64_t>();
}

}  // namespace

bool TeamValuers::Batch::done() const {
  return std::all_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.stage == Stage::kDone; });
}

void TeamValuers::Batch::keep(Part& part, std::vector<ValuedSample> found) {
  if (part.stage == Stage::kDone) return;
  std::move(found.begin(), found.end(),
            samples.begin() + static_cast<std::ptrdiff_t>(part.piece.first));
  part.stage = Stage::kDone;
}

TeamValuers::TeamValuers(dist::Notes& notes, std::size_t run_index, std::size_t problem_index,
                         PlaceContext& context, double least_seconds, const Budget& budget)
    : notes_(notes), valuer_(run_index, problem_index, context, least_seconds, budget) {
  notes_.on_notes(dist::Topic::kValues, [this](int from, dist::Reader& body) { hear(from, body); });
}

TeamValuers::~TeamValuers() {
  notes_.on_notes(dist::Topic::kValues, {});
}

void TeamValuers::choose(std::vector<std::int32_t> ranks) {
  for (const std::int32_t rank : ranks) {
    if (rank < 0 || rank >= notes_.size() || rank == notes_.rank()) {
      fail_input("rank {} is to value samples", rank);
    }
  }
  const std::lock_guard lock(mutex_);
  workers_ = std::move(ranks);
}

std::vector<ValuedSample> TeamValuers::value(const std::vector<Placement>& placements,
                                             bool with_starts, int threads) {
  const std::lock_guard one(one_at_a_time_);
  const std::size_t all = placements.size();
  Batch batch;
  std::unique_lock lock(mutex_);
  const bool shared = !workers_.empty() && valuer_.worth_sharing(all, threads);
  const std::size_t parts = shared ? valuer_.pieces_of(all, threads, workers_.size() + 1) : 1;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t first = i * all / parts;
    batch.parts.push_back({{&placements, first, (i + 1) * all / parts - first, with_starts}});
  }
  batch.samples.resize(all);
  ticket_ = next_ticket();
  batch_ = &batch;
  // A late answer may come at any time.
  const struct End {
    TeamValuers& valuers;
    std::unique_lock<std::mutex>& lock;
    ~End() {
      if (!lock.owns_lock()) lock.lock();
      valuers.batch_ = nullptr;
    }
  } end{*this, lock};
  for (;;) {
    if (valuer_.gives_up()) give_up(batch);
    Part* part = next_part(batch);
    if (part != nullptr) part->stage = Stage::kTaken;
    ask(batch);
    if (part == nullptr) {
      if (batch.done()) return std::move(batch.samples);
      changed_.wait_for(lock, kGlance);
      continue;
    }
    lock.unlock();
    std::vector<ValuedSample> found = valuer_.value_here(part->piece, threads);
    lock.lock();
    batch.keep(*part, std::move(found));
  }
}

void TeamValuers::give_up(Batch& batch) const {
  for (Part& part : batch.parts) batch.keep(part, valuer_.given_up(part.piece));
}

void TeamValuers::ask(Batch& batch) {
  const Clock::time_point now = Clock::now();
  for (const std::int32_t worker : workers_) {
    const auto busy = busy_.find(worker);
    if (liars_.contains(worker) || (busy != busy_.end() && now < busy->second)) continue;
    const auto part = std::find_if(batch.parts.begin(), batch.parts.end(),
                                   [](const Part& each) { return each.stage == Stage::kWaiting; });
    if (part == batch.parts.end()) return;
    part->stage = Stage::kAsked;
    part->asked = now;
    busy_[worker] = now + std::chrono::ceil<Clock::duration>(
                              std::max<duration<double>>(kAskAgain, patience(*part)));
    dist::Writer writer;
    writer.number(ticket_).number<std::uint64_t>(
        static_cast<std::uint64_t>(part - batch.parts.begin()));
    valuer_.put(writer, part->piece);
    notes_.note(worker, dist::Topic::kSamples, writer.take());
  }
}

TeamValuers::Part* TeamValuers::next_part(Batch& batch) const {
  const Clock::time_point now = Clock::now();
  Part* late = nullptr;
  for (Part& part : batch.parts) {
    if (part.stage == Stage::kWaiting) return &part;
    if (part.stage != Stage::kAsked || now - part.asked < patience(part)) continue;
    if (late == nullptr || part.asked < late->asked) late = &part;
  }
  return late;
}

duration<double> TeamValuers::patience(const Part& part) const {
  const double expected =
      std::max(0.0, valuer_.seconds_each()) * static_cast<double>(part.piece.count);
  return std::max(kLeastPatience, duration<double>(kMorePatience * expected));
}

void TeamValuers::hear(int from, dist::Reader& body) {
  const auto ticket = body.number<std::uint64_t>();
  const auto index = static_cast<std::size_t>(body.number<std::uint64_t>());
  const std::lock_guard lock(mutex_);
  busy_.erase(from);
  changed_.notify_all();
  if (batch_ == nullptr || ticket != ticket_) return;  // it took too long
  try {
    if (index >= batch_->parts.size()) fail_input("it values part {}", index);
    Part& part = batch_->parts[index];
    if (part.stage == Stage::kDone) return;
    batch_->keep(part, valuer_.take(body, part.piece));
  } catch (const Error&) {
    // Another rank than the first cannot have it lost, but need not believe it.
    liars_.insert(from);
    if (index < batch_->parts.size() && batch_->parts[index].stage == Stage::kAsked) {
      batch_->parts[index].stage = Stage::kWaiting;
    }
    throw;
  }
}

SampleService::SampleService(dist::Notes& notes, Find find, int threads)
    : notes_(notes), find_(std::move(find)), threads_(threads), thread_([this] { work(); }) {
  notes_.on_notes(dist::Topic::kSamples, [this](int from, dist::Reader& body) {
    const std::string_view question = body.rest();
    const std::uint64_t ticket = ticket_of(question);
    const std::lock_guard lock(mutex_);
    // Nobody waits for an answer about an earlier batch.
    std::erase_if(questions_, [&](const auto& waiting) {
      return waiting.first == from && ticket_of(waiting.second) != ticket;
    });
    questions_.emplace_back(from, question);
    changed_.notify_all();
  });
}

SampleService::~SampleService() {
  notes_.on_notes(dist::Topic::kSamples, {});
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void SampleService::work() {
  for (;;) {
    std::pair<int, std::string> question;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closing_ || !questions_.empty(); });
      if (closing_) return;
      question = std::move(questions_.front());
      questions_.pop_front();
    }
    try {
      dist::Reader reader(question.second);
      const auto ticket = reader.number<std::uint64_t>();
      const auto part = reader.number<std::uint64_t>();
      Evaluator& evaluator = find_(take_sample_question(reader));
      notes_.note(question.first, dist::Topic::kValues,
                  dist::Writer().number(ticket).number(part).take() +
                      value_for_others(reader, evaluator, threads_));
    } catch (const std::exception&) {
      // Whoever asks values it itself then.
    }
  }
}

}  // namespace emplace
