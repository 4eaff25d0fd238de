#include "io/gzip.h"

#include <algorithm>
#include <memory>
#include <new>

#include <zlib.h>

#include "base/check.h"
#include "base/error.h"
#include "base/limits.h"

namespace emplace {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, with gzip's header and trailer

class Inflater {
 public:
  // `packed`: the bytes of the whole file.
  Inflater(const std::string& path, std::size_t packed)
      : path_(path),
        most_(std::min(limits::kInputBytes,
                       std::max(limits::kUnpackedFreely, packed * limits::kUnpackRatio))) {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends one member's content to `content` and returns what follows the member.
  std::string_view member(std::string_view bytes, std::string& content) {
    EMPLACE_CHECK(inflateReset(&stream_) == Z_OK);
    std::size_t used = content.size();
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      const auto give = static_cast<uInt>(std::min(bytes.size(), kChunk));
      content.resize(used + kChunk);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream_.avail_in = give;
      stream_.next_out = reinterpret_cast<Bytef*>(content.data() + used);
      stream_.avail_out = static_cast<uInt>(kChunk);
      status = inflate(&stream_, Z_NO_FLUSH);
      bytes.remove_prefix(give - stream_.avail_in);
      used += kChunk - stream_.avail_out;
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (used > most_) refuse_size();
      if (status == Z_BUF_ERROR || (status == Z_OK && bytes.empty() && stream_.avail_out > 0)) {
        fail_input("{}: the gzip data ends too early; the file is truncated", path_);
      }
      if (status != Z_OK && status != Z_STREAM_END) {
        fail_input("{}: the gzip data is corrupt: {}", path_,
                   stream_.msg != nullptr ? stream_.msg : "inflate failed");
      }
    }
    content.resize(used);
    return bytes;
  }

 private:
  [[noreturn]] void refuse_size() const {
    if (most_ == limits::kInputBytes) {
      fail(ErrorKind::kUnsupported,
           "{}: holds more than the {} GiB that an input may have when it is unpacked", path_,
           limits::kInputBytes >> 30);
    }
    fail(ErrorKind::kUnsupported,
         "{}: holds more than {} MiB, and that is more than {} times its own size", path_,
         limits::kUnpackedFreely >> 20, limits::kUnpackRatio);
  }

  const std::string& path_;
  std::size_t most_;
  z_stream stream_{};
};

}  // namespace

bool has_gzip_magic(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

std::string gunzip(std::string_view bytes, const std::string& path) {
  Inflater inflater(path, bytes.size());
  std::string content;
  std::size_t members = 0;
  while (has_gzip_magic(bytes)) {
    bytes = inflater.member(bytes, content);
    if (++members > limits::kGzipMembers) {
      fail(ErrorKind::kUnsupported, "{}: has more than the {} gzip members that a file may have",
           path, limits::kGzipMembers);
    }
  }
  // Archivers pad with zeros; anything else was meant to be data.
  if (bytes.find_first_not_of('\0') != std::string_view::npos) {
    fail_input("{}: the gzip data is corrupt: {} bytes that are not gzip follow it", path,
               bytes.size());
  }
  return content;
}

std::string gzip(std::string_view content) {
  z_stream stream{};
  constexpr int kMemoryLevel = 8;
  const int begun = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow,
                                 kMemoryLevel, Z_DEFAULT_STRATEGY);
  if (begun == Z_MEM_ERROR) throw std::bad_alloc();
  EMPLACE_CHECK(begun == Z_OK);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  std::string bytes;
  std::size_t used = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    const auto give = static_cast<uInt>(std::min(content.size(), kChunk));
    bytes.resize(used + kChunk);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream.avail_in = give;
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + used);
    stream.avail_out = static_cast<uInt>(kChunk);
    status = deflate(&stream, give == content.size() ? Z_FINISH : Z_NO_FLUSH);
    EMPLACE_CHECK(status == Z_OK || status == Z_STREAM_END);
    content.remove_prefix(give - stream.avail_in);
    used += kChunk - stream.avail_out;
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace emplace
