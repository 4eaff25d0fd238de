#include "learn/train/state.h"

#include <cstring>

#include "base/check.h"
#include "base/error.h"

#include "learn/nn/torch.h"

// Layout, little-endian: magic, version, number of entries, entries, checksum of all before it. An
// entry: name, kind, shape, bytes; lengths are 64-bit numbers.
namespace emplace::learn {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr char kIntegers = 'i';
constexpr char kReals = 'r';
constexpr char kText = 't';
constexpr char kTensorFloat = 'f';
constexpr char kTensorInteger = 'n';

std::string magic(std::string_view what) {
  return "emplace " + std::string(what) + "\n";
}

// FNV-1a, over eight bytes at a time.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    hash = (hash ^ word) * 0x100000001b3ULL;
    hash ^= hash >> 29;
  }
  for (; at < bytes.size(); ++at) {
    hash = (hash ^ static_cast<unsigned char>(bytes[at])) * 0x100000001b3ULL;
  }
  return hash;
}

void append(std::string& to, std::int64_t value) {
  char bytes[8];
  std::memcpy(bytes, &value, 8);
  to.append(bytes, 8);
}

void append_entry(std::string& to, const std::string& name, char kind,
                  const std::vector<std::int64_t>& shape, std::string_view bytes) {
  append(to, static_cast<std::int64_t>(name.size()));
  to += name;
  to += kind;
  append(to, static_cast<std::int64_t>(shape.size()));
  for (const std::int64_t size : shape) append(to, size);
  append(to, static_cast<std::int64_t>(bytes.size()));
  to += bytes;
}

template <class T>
std::string_view raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Reads front to back; damage was ruled out by the checksum, so running out is a wrong version.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : left_(bytes) {}

  std::string_view take(std::size_t count) {
    if (count > left_.size()) throw std::out_of_range("");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, take(8).data(), 8);
    if (value < 0) throw std::out_of_range("");
    return value;
  }

 private:
  std::string_view left_;
};

}  // namespace

void StateWriter::put(const std::string& name, const std::vector<std::int64_t>& values) {
  append_entry(entries_, name, kIntegers, {}, raw(values));
  ++count_;
}

void StateWriter::put(const std::string& name, const std::vector<double>& values) {
  append_entry(entries_, name, kReals, {}, raw(values));
  ++count_;
}

void StateWriter::put(const std::string& name, const std::string& text) {
  append_entry(entries_, name, kText, {}, text);
  ++count_;
}

void StateWriter::put(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().cpu().contiguous();
  const bool whole = flat.scalar_type() == torch::kInt64;
  EMPLACE_CHECK(whole || flat.scalar_type() == torch::kFloat32);
  append_entry(entries_, name, whole ? kTensorInteger : kTensorFloat, flat.sizes().vec(),
               {static_cast<const char*>(flat.data_ptr()),
                static_cast<std::size_t>(flat.numel() * flat.element_size())});
  ++count_;
}

std::string StateWriter::bytes(std::string_view what) const {
  std::string result = magic(what);
  append(result, kVersion);
  append(result, count_);
  result += entries_;
  append(result, static_cast<std::int64_t>(checksum(result)));
  return result;
}

StateReader::StateReader(std::string_view bytes, std::string file_name, std::string what)
    : file_name_(std::move(file_name)), what_(std::move(what)), bytes_(bytes) {
  const std::string_view all = bytes_;
  const std::size_t head = magic(what_).size();
  if (!all.starts_with(magic(what_))) fail_input("{}: not a {} of emplace", file_name_, what_);
  if (all.size() < head + 24) fail_input("{}: the {} is cut off", file_name_, what_);
  std::int64_t version = 0;
  std::memcpy(&version, all.data() + head, 8);
  if (version != kVersion) {
    fail_input("{}: a {} of version {}; expected version {}", file_name_, what_, version, kVersion);
  }
  std::uint64_t sum = 0;
  std::memcpy(&sum, all.data() + all.size() - 8, 8);
  if (sum != checksum(all.substr(0, all.size() - 8))) {
    fail_input("{}: the {} is damaged: its checksum is wrong", file_name_, what_);
  }
  try {
    Cursor cursor(all.substr(head + 8, all.size() - head - 16));
    for (std::int64_t left = cursor.number(); left > 0; --left) {
      const std::string name(cursor.take(static_cast<std::size_t>(cursor.number())));
      Entry entry;
      entry.kind = cursor.take(1)[0];
      entry.shape.resize(static_cast<std::size_t>(cursor.number()));
      for (std::int64_t& size : entry.shape) size = cursor.number();
      entry.bytes = cursor.take(static_cast<std::size_t>(cursor.number()));
      entries_.emplace(name, entry);
    }
  } catch (const std::out_of_range&) {
    fail_input("{}: the {} makes no sense", file_name_, what_);
  }
}

const StateReader::Entry& StateReader::find(const std::string& name, char kind) const {
  const auto at = entries_.find(name);
  if (at == entries_.end() || at->second.kind != kind) {
    fail_input("{}: the {} has no '{}': it is of another placer or of other options", file_name_,
               what_, name);
  }
  return at->second;
}

std::vector<std::int64_t> StateReader::integers(const std::string& name) const {
  const std::string_view bytes = find(name, kIntegers).bytes;
  std::vector<std::int64_t> values(bytes.size() / sizeof(std::int64_t));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<double> StateReader::reals(const std::string& name) const {
  const std::string_view bytes = find(name, kReals).bytes;
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string StateReader::text(const std::string& name) const {
  return std::string(find(name, kText).bytes);
}

std::int64_t StateReader::integer(const std::string& name) const {
  const auto values = integers(name);
  if (values.size() != 1) fail_input("{}: '{}' is not one number", file_name_, name);
  return values[0];
}

double StateReader::real(const std::string& name) const {
  const auto values = reals(name);
  if (values.size() != 1) fail_input("{}: '{}' is not one number", file_name_, name);
  return values[0];
}

at::Tensor StateReader::tensor(const std::string& name) const {
  const auto at = entries_.find(name);
  const bool whole = at != entries_.end() && at->second.kind == kTensorInteger;
  const Entry& entry = find(name, whole ? kTensorInteger : kTensorFloat);
  at::Tensor result = torch::empty(entry.shape, whole ? torch::kInt64 : torch::kFloat32);
  if (static_cast<std::size_t>(result.numel() * result.element_size()) != entry.bytes.size()) {
    fail_input("{}: '{}' has the wrong size", file_name_, name);
  }
  if (!entry.bytes.empty()) std::memcpy(result.data_ptr(), entry.bytes.data(), entry.bytes.size());
  return result;
}

void StateReader::load(const std::string& name, at::Tensor target) const {
  const at::Tensor saved = tensor(name);
  if (saved.sizes() != target.sizes()) {
    fail_input(
        "{}: '{}' has {} numbers where this policy has {}: the {} is of another problem or of "
        "other "
        "options",
        file_name_, name, saved.numel(), target.numel(), what_);
  }
  const torch::NoGradGuard no_gradients;
  target.copy_(saved);
}

}  // namespace emplace::learn
