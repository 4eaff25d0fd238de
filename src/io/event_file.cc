#include "io/event_file.h"

#include <bit>
#include <filesystem>

#include <fmt/format.h>
#include <isa-l/crc.h>

#include "io/event.pb.h"

namespace emplace {
namespace {

// The version of the format, in every file's first record.
constexpr const char* kFileVersion = "brain.Event:2";

template <class Unsigned>
void append_fixed(std::string& text, Unsigned value) {
  for (std::size_t byte = 0; byte < sizeof(Unsigned); ++byte) {
    text += static_cast<char>(static_cast<unsigned char>(value >> (8 * byte)));
  }
}

// The Castagnoli checksum (CRC-32C, RFC 3720). By value: the library does not promise to leave the
// bytes alone.
std::uint32_t crc32c(std::string bytes) {
  return ~crc32_iscsi(reinterpret_cast<unsigned char*>(bytes.data()),
                      static_cast<int>(bytes.size()), ~0U);
}

// Records hold checksums turned and shifted, so that one of data that holds checksums is not
// degenerate.
std::uint32_t masked_checksum(const std::string& bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

std::string record(const event::Event& event) {
  const std::string content = event.SerializeAsString();
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
  event::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version(kFileVersion);
  file_.append(record(event));
}

void EventFile::restart_at(double wall_time, std::int64_t step) {
  event::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  event.mutable_session_log()->set_status(event::SessionLog::START);
  file_.append(record(event));
}

void EventFile::add(double wall_time, std::int64_t step, std::span<const Scalar> scalars) {
  event::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  for (const Scalar& scalar : scalars) {
    event::Summary::Value& value = *event.mutable_summary()->add_value();
    value.set_tag(std::string(scalar.tag));
    value.set_simple_value(static_cast<float>(scalar.value));
  }
  file_.append(record(event));
}

}  // namespace emplace
