// What checkpoints and policy files hold: named numbers, texts and tensors, in one string of bytes
// with a checksum.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace at {
class Tensor;
}

namespace emplace::learn {

// Kinds of entries that are tensors.
inline constexpr char kTensorFloat = 'f';
inline constexpr char kTensorInteger = 'n';

class StateWriter {
 public:
  void put(const std::string& name, const std::vector<std::int64_t>& values);
  void put(const std::string& name, const std::vector<double>& values);
  void put(const std::string& name, const std::string& text);
  void put(const std::string& name, const at::Tensor& tensor);
  void put(const std::string& name, std::int64_t value) { put(name, std::vector{value}); }
  void put(const std::string& name, double value) { put(name, std::vector{value}); }

  // `what` it is goes into the first line: "checkpoint", "policy".
  std::string bytes(std::string_view what = "checkpoint") const;

 private:
  void append_entry(const std::string& name, char kind, const std::vector<std::int64_t>& shape,
                    std::string_view bytes);

  std::string entries_;
  std::int64_t count_ = 0;
};

// Throws an Error that names the file and says what is wrong when the bytes are none of `what`,
// damaged, of another version, malformed, or lack what is asked for. What a malformed file takes in
// memory is in proportion to its size. A right checksum proves nothing: whoever asks says how many
// numbers there are to be and of which range; numbers that are not finite are refused everywhere.
class StateReader {
 public:
  StateReader(std::string_view bytes, std::string file_name, std::string what = "checkpoint");
  // Entries refer to its bytes.
  StateReader(const StateReader&) = delete;
  StateReader& operator=(const StateReader&) = delete;

  std::vector<std::int64_t> integers(const std::string& name) const;
  std::vector<double> reals(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  // From `least` to `most`, which may be infinite.
  std::int64_t integer(const std::string& name, std::int64_t least, std::int64_t most) const;
  double real(const std::string& name, double least, double most) const;
  // How often something happened: neither negative nor so often that adding to it overflows.
  std::int64_t count(const std::string& name) const;
  // `size` numbers, each of them from 0 and less than `below`.
  std::vector<std::int64_t> indices(const std::string& name, std::size_t size,
                                    std::size_t below) const;
  // Of floating-point numbers, into a tensor of the same shape, wherever that lies.
  void load(const std::string& name, at::Tensor tensor) const;
  // Of whatever shape was saved, on the CPU: floating-point numbers, and whole ones.
  at::Tensor tensor(const std::string& name) const;
  at::Tensor whole_tensor(const std::string& name) const;

  const std::string& file_name() const { return file_name_; }
  // That an entry is not what was expected.
  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const;

 private:
  struct Entry {
    char kind = 0;
    std::vector<std::int64_t> shape;
    std::string_view bytes;
  };
  void read_entries(std::string_view bytes);
  const Entry& find(const std::string& name, char kind) const;
  at::Tensor tensor_of(const Entry& entry) const;

  std::string file_name_;
  std::string what_;
  std::string bytes_;
  std::map<std::string, Entry> entries_;
};

}  // namespace emplace::learn
