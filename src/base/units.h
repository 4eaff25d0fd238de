// Times and sizes: 64-bit integers throughout, written for people only at the edges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <emplace/types.h>

namespace emplace {

// "16GiB", "1.5 GB", "4096": B, KB, MB, GB, TB are powers of 1000, KiB... powers of 1024. Exact,
// rounded half up to whole bytes. Nothing when the text is not a size or is negative or too large.
std::optional<Bytes> parse_bytes(std::string_view text);

// "12GB/s", "100Gb/s": bytes per second. Units of parse_bytes, or Kb, Mb, Gb, Tb for bits, and
// always "/s" (or "ps"): a bare number could mean anything.
std::optional<std::int64_t> parse_bandwidth(std::string_view text);

// "90s", "5m", "1.5h", "500ms": a duration; a bare number is in seconds.
std::optional<double> parse_seconds(std::string_view text);

std::string format_bytes(Bytes bytes);      // "11.2 GiB"
std::string format_time(Nanoseconds time);  // "3.72 ms"
std::string format_count(std::int64_t n);   // "25,259"

}  // namespace emplace
