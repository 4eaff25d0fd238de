#include "io/onnx_external.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

// Programs map these files into memory, which wants whole pages.
constexpr Bytes kAlignment = 4096;

void for_each_tensor_of_graph(onnx::GraphProto& graph,
                              const std::function<void(onnx::TensorProto&)>& visit) {
  for (auto& tensor : *graph.mutable_initializer()) visit(tensor);
  for (auto& node : *graph.mutable_node()) for_each_tensor(node, visit);
}

std::optional<std::string> external_entry(const onnx::TensorProto& tensor, std::string_view key) {
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == key) return entry.value();
  }
  return std::nullopt;
}

// Nothing where the tensor does not say.
std::optional<Bytes> external_number(const onnx::TensorProto& tensor, std::string_view key) {
  const auto text = external_entry(tensor, key);
  if (!text || text->empty()) return std::nullopt;
  Bytes number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || number < 0) {
    fail_input("tensor '{}': external_data: {}: expected a number of bytes instead of '{}'",
               tensor.name(), key, *text);
  }
  return number;
}

// -1 with ELOOP where the name is a link's.
int open_no_link(int folder, const char* name, int flags) {
  const int opened = ::openat(folder, name, flags | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  // Of a link where a folder is expected, the system says that it is none.
  struct stat status {};
  if (opened < 0 && errno == ENOTDIR) {
    const bool link =
        ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
    errno = link ? ELOOP : ENOENT;  // below what is no folder there is nothing
  }
  return opened;
}

// A file below the folder, step by step, so that no link leads out of it; -1, or errno says why
// not. A pipe is opened without waiting for whoever writes to it.
int descriptor_beneath(const std::string& folder, const fs::path& relative) {
  int at = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (auto part = relative.begin(); at >= 0 && part != relative.end(); ++part) {
    const bool last = std::next(part) == relative.end();
    const int next = open_no_link(at, part->c_str(), last ? O_NONBLOCK : O_DIRECTORY);
    const int problem = errno;
    ::close(at);
    errno = problem;
    at = next;
  }
  return at;
}

}  // namespace

ExternalCopier::File ExternalCopier::open_beneath(const std::string& folder,
                                                  const fs::path& relative) {
  const int descriptor = descriptor_beneath(folder, relative);
  return File(descriptor < 0 ? nullptr : ::fdopen(descriptor, "rb"));
}

void for_each_tensor(onnx::NodeProto& node, const std::function<void(onnx::TensorProto&)>& visit) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_t()) visit(*attribute.mutable_t());
    for (auto& tensor : *attribute.mutable_tensors()) visit(tensor);
    if (attribute.has_g()) for_each_tensor_of_graph(*attribute.mutable_g(), visit);
    for (auto& graph : *attribute.mutable_graphs()) for_each_tensor_of_graph(graph, visit);
  }
}

ExternalCopier::ExternalCopier(std::string from_folder, std::string to_folder, std::string file)
    : from_folder_(std::move(from_folder)),
      path_((fs::path(to_folder) / file).string()),
      name_(std::move(file)) {}

void ExternalCopier::copy(onnx::TensorProto& tensor) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
  const std::string location = external_entry(tensor, "location").value_or("");
  const fs::path relative = fs::path(location).lexically_normal();
  if (location.empty() || relative.is_absolute() || *relative.begin() == "..") {
    fail_input(
        "tensor '{}': external_data: location: expected a file in the model's folder instead "
        "of '{}'",
        tensor.name(), location);
  }
  const std::string path = (fs::path(from_folder_) / relative).string();
  const File from = open_beneath(from_folder_, relative);
  if (!from && errno == ENOENT) {
    if (std::find(missing_.begin(), missing_.end(), location) == missing_.end()) {
      missing_.push_back(location);
    }
    return;
  }
  if (!from && errno == ELOOP) {
    fail_input(
        "tensor '{}': external_data: location: '{}' is or goes through a link; expected a file in "
        "the model's folder",
        tensor.name(), location);
  }
  if (!from) fail(ErrorKind::kSystem, "{}: cannot be read: {}", path, file_error());
  struct stat status {};
  if (::fstat(::fileno(from.get()), &status) != 0 || !S_ISREG(status.st_mode)) {
    fail_input("tensor '{}': external_data: location: '{}' is no file", tensor.name(), location);
  }
  const auto size = static_cast<Bytes>(status.st_size);
  const Bytes offset = external_number(tensor, "offset").value_or(0);
  const Bytes length =
      external_number(tensor, "length").value_or(std::max<Bytes>(size - offset, 0));
  if (length > size || offset > size - length) {
    fail_input("{}: has {} bytes, and tensor '{}' is said to be {} bytes from byte {} on", path,
               size, tensor.name(), length, offset);
  }
  if (!file_) {
    constexpr mode_t kMode = 0666;  // the user's umask decides, as for any file
    file_ = OutputFile(path_, O_WRONLY | O_CREAT | O_TRUNC, kMode);
    if (!file_) refuse(file_error());
  }
  const Bytes start = (end_ + kAlignment - 1) / kAlignment * kAlignment;
  refuse(file_.write(std::string(static_cast<std::size_t>(start - end_), '\0')));
  append(from.get(), offset, length, path);
  end_ = start + length;
  tensor.clear_external_data();
  const auto say = [&](const char* key, std::string value) {
    auto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(std::move(value));
  };
  say("location", name_);
  say("offset", fmt::format("{}", start));
  say("length", fmt::format("{}", length));
}

void ExternalCopier::append(std::FILE* from, Bytes offset, Bytes length, const std::string& path) {
  if (::fseeko(from, offset, SEEK_SET) != 0) {
    fail(ErrorKind::kSystem, "{}: cannot be read: {}", path, file_error());
  }
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  std::vector<char> piece(kPiece);
  while (length > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<Bytes>(length, kPiece));
    if (std::fread(piece.data(), 1, wanted, from) != wanted) {
      fail(ErrorKind::kSystem, "{}: cannot be read: {}", path, file_error());
    }
    refuse(file_.write({piece.data(), wanted}));
    length -= static_cast<Bytes>(wanted);
  }
}

void ExternalCopier::finish() {
  if (!file_) return;
  refuse(file_.sync());
  refuse(file_.close());
}

void ExternalCopier::refuse(const std::string& problem) const {
  if (!problem.empty()) fail(ErrorKind::kSystem, "{}: cannot be written: {}", path_, problem);
}

}  // namespace emplace
