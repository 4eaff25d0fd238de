// Reads and writes named values as one string of bytes. Layout, little-endian: a line that says
// what it is, version, number of entries, entries, CRC-32 of all before it (zlib's). An entry:
// name, kind, shape, bytes; all numbers of the layout are 64 bits wide.
//
// Nothing in the bytes is believed before it is checked: the checksum finds damage, and against
// files made to deceive, every length is compared with what is left before anything of that length
// is made. (libtorch's archives are no alternative: of 600 with three bytes changed one was read
// without end and 59 threw what is no torch error, and a shipped policy takes six times as long.)
// What becomes of tensors is in state_tensors.cc, so that this needs no libtorch.
#include "learn/train/state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <zlib.h>

#include "base/error.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kVersion = 2;
constexpr char kIntegers = 'i';
constexpr char kReals = 'r';
constexpr char kText = 't';
// Of anything that is counted: far more than any run does, and far from overflowing.
constexpr std::int64_t kMostCounted = 1'000'000'000'000'000;
constexpr std::size_t kMostElements = std::size_t{1} << 60;

std::string magic(std::string_view what) {
  return "emplace " + std::string(what) + "\n";
}

std::int64_t checksum(std::string_view bytes) {
  return static_cast<std::int64_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void append(std::string& to, std::int64_t value) {
  char bytes[8];
  std::memcpy(bytes, &value, 8);
  to.append(bytes, 8);
}

std::int64_t number_at(std::string_view bytes, std::size_t at) {
  std::int64_t value = 0;
  std::memcpy(&value, bytes.data() + at, 8);
  return value;
}

template <class T>
std::string_view raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> values_of(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// What is wrong with the bytes, without the file's name.
struct Malformed {
  std::string what;
};

// Reads front to back.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : left_(bytes) {}

  bool at_end() const { return left_.empty(); }
  std::string_view take(std::size_t count) {
    if (count > left_.size()) {
      throw Malformed{fmt::format("{} bytes are missing at its end", count - left_.size())};
    }
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  std::int64_t number() {
    const std::int64_t value = number_at(take(8), 0);
    if (value < 0) throw Malformed{fmt::format("a length of {}", value)};
    return value;
  }
  std::string_view counted() { return take(static_cast<std::size_t>(number())); }
  std::vector<std::int64_t> numbers() {
    const std::int64_t count = number();
    if (static_cast<std::size_t>(count) > left_.size() / 8) {
      throw Malformed{fmt::format("a shape of {} dimensions", count)};
    }
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < count; ++i) result.push_back(number());
    return result;
  }

 private:
  std::string_view left_;
};

std::size_t element_size(char kind) {
  switch (kind) {
    case kText:
      return 1;
    case kTensorFloat:
      return sizeof(float);
    case kIntegers:
    case kReals:
    case kTensorInteger:
      return 8;
    default:
      throw Malformed{fmt::format("a kind '{}'", static_cast<int>(kind))};
  }
}

// That a tensor has as many numbers as its shape says, and others a whole number of them.
void check_size(char kind, const std::vector<std::int64_t>& shape, std::size_t bytes) {
  const std::size_t elements = bytes / element_size(kind);
  bool fits = bytes % element_size(kind) == 0;
  if (kind == kTensorFloat || kind == kTensorInteger) {
    bool none = false;
    std::size_t product = 1;  // of all but zeros: libtorch's strides must not overflow
    for (const std::int64_t size : shape) {
      none = none || size == 0;
      const auto factor = static_cast<std::size_t>(std::max<std::int64_t>(1, size));
      fits = fits && product <= kMostElements / factor;
      product *= factor;
    }
    fits = fits && (none ? 0 : product) == elements;
  } else {
    fits = fits && shape.empty();
  }
  if (!fits) throw Malformed{fmt::format("{} bytes do not fit its shape", bytes)};
}

}  // namespace

void StateWriter::put(const std::string& name, const std::vector<std::int64_t>& values) {
  append_entry(name, kIntegers, {}, raw(values));
}

void StateWriter::put(const std::string& name, const std::vector<double>& values) {
  append_entry(name, kReals, {}, raw(values));
}

void StateWriter::put(const std::string& name, const std::string& text) {
  append_entry(name, kText, {}, text);
}

void StateWriter::append_entry(const std::string& name, char kind,
                               const std::vector<std::int64_t>& shape, std::string_view bytes) {
  append(entries_, static_cast<std::int64_t>(name.size()));
  entries_ += name;
  entries_ += kind;
  append(entries_, static_cast<std::int64_t>(shape.size()));
  for (const std::int64_t size : shape) append(entries_, size);
  append(entries_, static_cast<std::int64_t>(bytes.size()));
  entries_ += bytes;
  ++count_;
}

std::string StateWriter::bytes(std::string_view what) const {
  std::string result = magic(what);
  append(result, kVersion);
  append(result, count_);
  result += entries_;
  append(result, checksum(result));
  return result;
}

StateReader::StateReader(std::string_view bytes, std::string file_name, std::string what)
    : file_name_(std::move(file_name)), what_(std::move(what)), bytes_(bytes) {
  const std::string_view all = bytes_;
  const std::size_t head = magic(what_).size();
  if (!all.starts_with(magic(what_))) fail_input("{}: not a {} of emplace", file_name_, what_);
  if (all.size() < head + 24) fail_input("{}: the {} is cut off", file_name_, what_);
  const std::int64_t version = number_at(all, head);
  if (version != kVersion) {
    fail_input("{}: a {} of version {}; expected version {}", file_name_, what_, version, kVersion);
  }
  if (number_at(all, all.size() - 8) != checksum(all.substr(0, all.size() - 8))) {
    fail_input("{}: the {} is damaged: its checksum is wrong", file_name_, what_);
  }
  read_entries(all.substr(head + 8, all.size() - head - 16));
}

void StateReader::read_entries(std::string_view bytes) {
  std::string name;  // of the entry that is read
  try {
    Cursor cursor(bytes);
    for (std::int64_t left = cursor.number(); left > 0; --left) {
      name.clear();
      name = cursor.counted();
      Entry entry;
      entry.kind = cursor.take(1)[0];
      entry.shape = cursor.numbers();
      entry.bytes = cursor.counted();
      check_size(entry.kind, entry.shape, entry.bytes.size());
      if (!entries_.emplace(name, entry).second) throw Malformed{"it is there twice"};
    }
    name.clear();
    if (!cursor.at_end()) throw Malformed{"there is more after its last entry"};
  } catch (const Malformed& malformed) {
    fail_input("{}: the {} is malformed{}: {}", file_name_, what_,
               name.empty() ? "" : fmt::format(" at '{}'", name), malformed.what);
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
  return values_of<std::int64_t>(find(name, kIntegers).bytes);
}

std::vector<double> StateReader::reals(const std::string& name) const {
  std::vector<double> values = values_of<double>(find(name, kReals).bytes);
  if (!std::all_of(values.begin(), values.end(),
                   [](double value) { return std::isfinite(value); })) {
    refuse(name, "numbers that are finite");
  }
  return values;
}

std::string StateReader::text(const std::string& name) const {
  return std::string(find(name, kText).bytes);
}

std::int64_t StateReader::integer(const std::string& name) const {
  const auto values = integers(name);
  if (values.size() != 1) refuse(name, "one number");
  return values[0];
}

double StateReader::real(const std::string& name) const {
  constexpr double kLargest = std::numeric_limits<double>::max();
  return real(name, -kLargest, kLargest);
}

std::int64_t StateReader::integer(const std::string& name, std::int64_t least,
                                  std::int64_t most) const {
  const std::int64_t value = integer(name);
  if (value < least || value > most) {
    refuse(name, fmt::format("a number from {} to {}, not {}", least, most, value));
  }
  return value;
}

double StateReader::real(const std::string& name, double least, double most) const {
  const auto values = values_of<double>(find(name, kReals).bytes);
  if (values.size() != 1) refuse(name, "one number");
  if (!(values[0] >= least && values[0] <= most)) {  // also where it is none
    refuse(name, fmt::format("a number from {} to {}, not {}", least, most, values[0]));
  }
  return values[0];
}

std::int64_t StateReader::count(const std::string& name) const {
  return integer(name, 0, kMostCounted);
}

std::vector<std::int64_t> StateReader::indices(const std::string& name, std::size_t size,
                                               std::size_t below) const {
  std::vector<std::int64_t> values = integers(name);
  const bool fits = values.size() == size &&
                    std::all_of(values.begin(), values.end(), [below](std::int64_t value) {
                      return value >= 0 && static_cast<std::uint64_t>(value) < below;
                    });
  if (!fits) refuse(name, fmt::format("{} numbers from 0 and less than {}", size, below));
  return values;
}

void StateReader::refuse(const std::string& name, const std::string& expected) const {
  fail_input("{}: '{}' of the {} is wrong; expected {}", file_name_, name, what_, expected);
}

}  // namespace emplace::learn
