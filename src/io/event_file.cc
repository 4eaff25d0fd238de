#include "io/event_file.h"

#include <bit>
#include <filesystem>

#include <fmt/format.h>

#include "base/crc32c.h"

namespace emplace {
namespace {

// Field numbers of TensorFlow's event.proto and summary.proto.
constexpr std::uint32_t kEventWallTime = 1;
constexpr std::uint32_t kEventStep = 2;
constexpr std::uint32_t kEventFileVersion = 3;
constexpr std::uint32_t kEventSummary = 5;
constexpr std::uint32_t kEventSessionLog = 7;
constexpr std::uint32_t kSummaryValue = 1;
constexpr std::uint32_t kValueTag = 1;
constexpr std::uint32_t kValueSimple = 2;
constexpr std::uint32_t kSessionLogStatus = 1;
constexpr std::uint64_t kSessionStart = 1;

// The version of the format, in every file's first record.
constexpr std::string_view kFileVersion = "brain.Event:2";

enum class WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class Unsigned>
void append_fixed(std::string& text, Unsigned value) {
  for (std::size_t byte = 0; byte < sizeof(Unsigned); ++byte) {
    text += static_cast<char>(static_cast<unsigned char>(value >> (8 * byte)));
  }
}

// A message in protobuf's wire format.
class Message {
 public:
  Message& varint(std::uint32_t field, std::uint64_t value) {
    key(field, WireType::kVarint);
    append_varint(value);
    return *this;
  }
  Message& real64(std::uint32_t field, double value) {
    key(field, WireType::kFixed64);
    append_fixed(text_, std::bit_cast<std::uint64_t>(value));
    return *this;
  }
  Message& real32(std::uint32_t field, float value) {
    key(field, WireType::kFixed32);
    append_fixed(text_, std::bit_cast<std::uint32_t>(value));
    return *this;
  }
  Message& bytes(std::uint32_t field, std::string_view value) {
    key(field, WireType::kBytes);
    append_varint(value.size());
    text_ += value;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void key(std::uint32_t field, WireType type) {
    append_varint((field << 3) | static_cast<std::uint32_t>(type));
  }
  void append_varint(std::uint64_t value) {
    constexpr std::uint64_t kMore = 0x80;
    for (; value >= kMore; value >>= 7) text_ += static_cast<char>((value & 0x7f) | kMore);
    text_ += static_cast<char>(value);
  }

  std::string text_;
};

// Records hold checksums turned and shifted, so that one of data that holds checksums is not
// degenerate.
std::uint32_t masked_checksum(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

std::string record(std::string_view content) {
  std::string text;
  append_fixed(text, static_cast<std::uint64_t>(content.size()));
  append_fixed(text, masked_checksum(text));
  text += content;
  append_fixed(text, masked_checksum(content));
  return text;
}

std::string free_name(const std::string& folder, double wall_time) {
  auto seconds = static_cast<std::int64_t>(wall_time);
  std::string path;
  do {
    path = fmt::format("{}/events.out.tfevents.{:010}{}", folder, seconds++, kEventFileEnding);
  } while (std::filesystem::exists(path));
  return path;
}

}  // namespace

EventFile::EventFile(const std::string& folder, double wall_time)
    : file_(free_name(folder, wall_time), AppendFile::Open::kNew) {
  append_event(
      Message().real64(kEventWallTime, wall_time).bytes(kEventFileVersion, kFileVersion).text());
}

void EventFile::restart_at(double wall_time, std::int64_t step) {
  append_event(
      Message()
          .real64(kEventWallTime, wall_time)
          .varint(kEventStep, static_cast<std::uint64_t>(step))
          .bytes(kEventSessionLog, Message().varint(kSessionLogStatus, kSessionStart).text())
          .text());
}

void EventFile::add(double wall_time, std::int64_t step, std::span<const Scalar> scalars) {
  Message summary;
  for (const Scalar& scalar : scalars) {
    summary.bytes(kSummaryValue, Message()
                                     .bytes(kValueTag, scalar.tag)
                                     .real32(kValueSimple, static_cast<float>(scalar.value))
                                     .text());
  }
  append_event(Message()
                   .real64(kEventWallTime, wall_time)
                   .varint(kEventStep, static_cast<std::uint64_t>(step))
                   .bytes(kEventSummary, summary.text())
                   .text());
}

void EventFile::append_event(std::string_view event) {
  file_.append(record(event));
}

}  // namespace emplace
