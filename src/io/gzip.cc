#include "io/gzip.h"

#include <algorithm>
#include <memory>

#include <zlib.h>

#include "base/check.h"
#include "base/error.h"

namespace emplace {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, with gzip's header and trailer

class Inflater {
 public:
  explicit Inflater(const std::string& path) : path_(path) {
    EMPLACE_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK);
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
  const std::string& path_;
  z_stream stream_{};
};

}  // namespace

bool has_gzip_magic(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

std::string gunzip(std::string_view bytes, const std::string& path) {
  Inflater inflater(path);
  std::string content;
  while (has_gzip_magic(bytes)) bytes = inflater.member(bytes, content);
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
  EMPLACE_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                             Z_DEFAULT_STRATEGY) == Z_OK);
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
