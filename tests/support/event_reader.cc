#include "support/event_reader.h"

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace emplace::testing {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// Bit by bit, from the definition.
std::uint32_t checksum(const std::string& bytes) {
  std::uint32_t rest = 0xffffffff;
  for (const char byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const auto input = (static_cast<std::uint32_t>(static_cast<unsigned char>(byte)) >> bit) & 1;
      rest = (rest & 1) != input ? (rest >> 1) ^ 0x82f63b78u : rest >> 1;
    }
  }
  return rest ^ 0xffffffff;
}

std::uint32_t masked(const std::string& bytes) {
  const std::uint32_t crc = checksum(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class Number>
Number number_at(const std::string& bytes, std::size_t position) {
  require(position + sizeof(Number) <= bytes.size(), "the record is cut off");
  Number number;
  std::memcpy(&number, bytes.data() + position, sizeof(Number));
  return number;
}

CodedInputStream stream(const std::string& message) {
  return CodedInputStream(reinterpret_cast<const std::uint8_t*>(message.data()),
                          static_cast<int>(message.size()));
}

std::string read_bytes(CodedInputStream& in) {
  std::uint32_t size = 0;
  std::string bytes;
  require(in.ReadVarint32(&size) && in.ReadString(&bytes, static_cast<int>(size)), "bad bytes");
  return bytes;
}

std::uint32_t key(int field, WireFormatLite::WireType type) {
  return WireFormatLite::MakeTag(field, type);
}

void read_value(const std::string& message, ReadEvent& event) {
  CodedInputStream in = stream(message);
  std::string tag;
  while (const std::uint32_t what = in.ReadTag()) {
    if (what == key(1, WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
      tag = read_bytes(in);
    } else {
      std::uint32_t bits = 0;
      require(what == key(2, WireFormatLite::WIRETYPE_FIXED32), "unknown field of a value");
      require(in.ReadLittleEndian32(&bits), "bad value");
      event.scalars[tag] = std::bit_cast<float>(bits);
    }
  }
  require(in.ConsumedEntireMessage(), "bad value message");
}

void read_summary(const std::string& message, ReadEvent& event) {
  CodedInputStream in = stream(message);
  while (const std::uint32_t what = in.ReadTag()) {
    require(what == key(1, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), "unknown summary field");
    read_value(read_bytes(in), event);
  }
  require(in.ConsumedEntireMessage(), "bad summary message");
}

ReadEvent read_event(const std::string& message) {
  ReadEvent event;
  CodedInputStream in = stream(message);
  while (const std::uint32_t what = in.ReadTag()) {
    if (what == key(1, WireFormatLite::WIRETYPE_FIXED64)) {
      std::uint64_t bits = 0;
      require(in.ReadLittleEndian64(&bits), "bad wall time");
      event.wall_time = std::bit_cast<double>(bits);
    } else if (what == key(2, WireFormatLite::WIRETYPE_VARINT)) {
      std::uint64_t step = 0;
      require(in.ReadVarint64(&step), "bad step");
      event.step = static_cast<std::int64_t>(step);
    } else if (what == key(3, WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
      event.file_version = read_bytes(in);
    } else if (what == key(5, WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
      read_summary(read_bytes(in), event);
    } else {
      require(what == key(7, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), "unknown event field");
      event.session_start = read_bytes(in) == "\x08\x01";
    }
  }
  require(in.ConsumedEntireMessage(), "bad event message");
  return event;
}

}  // namespace

std::vector<ReadEvent> read_events(const std::string& bytes) {
  constexpr std::size_t kHead = 12;
  std::vector<ReadEvent> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto size = number_at<std::uint64_t>(bytes, at);
    require(number_at<std::uint32_t>(bytes, at + 8) == masked(bytes.substr(at, 8)),
            "bad checksum of a length");
    const std::string content = bytes.substr(at + kHead, size);
    require(content.size() == size, "the record is cut off");
    require(number_at<std::uint32_t>(bytes, at + kHead + size) == masked(content),
            "bad checksum of a record");
    events.push_back(read_event(content));
    at += kHead + size + 4;
  }
  require(!events.empty() && events.front().file_version == "brain.Event:2", "no file version");
  return events;
}

std::vector<ReadEvent> shown_events(const std::string& folder) {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) {
      files.insert(entry.path());
    }
  }
  std::vector<ReadEvent> shown;
  for (const auto& file : files) {
    std::ostringstream bytes;
    bytes << std::ifstream(file, std::ios::binary).rdbuf();
    for (const ReadEvent& event : read_events(bytes.str())) {
      if (event.session_start) {
        std::erase_if(shown, [&](const ReadEvent& old) { return old.step >= event.step; });
      } else if (event.file_version.empty()) {
        shown.push_back(event);
      }
    }
  }
  return shown;
}

}  // namespace emplace::testing
