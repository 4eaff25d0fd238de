#include "base/units.h"

#include <gtest/gtest.h>

namespace emplace {
namespace {

TEST(ParseBytes, knows_powers_of_1000_and_of_1024) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("7B"), 7);
  EXPECT_EQ(parse_bytes("3KB"), 3'000);
  EXPECT_EQ(parse_bytes("3MB"), 3'000'000);
  EXPECT_EQ(parse_bytes("3GB"), 3'000'000'000);
  EXPECT_EQ(parse_bytes("3TB"), 3'000'000'000'000);
  EXPECT_EQ(parse_bytes("3KiB"), 3LL << 10);
  EXPECT_EQ(parse_bytes("3MiB"), 3LL << 20);
  EXPECT_EQ(parse_bytes("16GiB"), 16LL << 30);
  EXPECT_EQ(parse_bytes("3TiB"), 3LL << 40);
}

TEST(ParseBytes, takes_spaces_fractions_and_exponents) {
  EXPECT_EQ(parse_bytes(" 1.5 GB "), 1'500'000'000);
  EXPECT_EQ(parse_bytes("1e3"), 1000);
  EXPECT_EQ(parse_bytes("2.5e-1KB"), 250);
  EXPECT_EQ(parse_bytes("0.5B"), 1);  // half up
  EXPECT_EQ(parse_bytes("0"), 0);
}

TEST(ParseBytes, refuses_what_is_not_a_size) {
  for (const char* text : {"", "GB", "12 gb", "12GBs", "-1", "-1GB", "1..5GB", "12 G B", "1e30",
                           "10000000TiB", "12PB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(ParseBandwidth, is_bytes_or_bits_per_second) {
  EXPECT_EQ(parse_bandwidth("12GB/s"), 12'000'000'000);
  EXPECT_EQ(parse_bandwidth("1 GiB/s"), 1LL << 30);
  EXPECT_EQ(parse_bandwidth("7600000000B/s"), 7'600'000'000);
  EXPECT_EQ(parse_bandwidth("1.5GBps"), 1'500'000'000);
  EXPECT_EQ(parse_bandwidth("100Gb/s"), 12'500'000'000);
  EXPECT_EQ(parse_bandwidth("2.5 Gbit/s"), 312'500'000);
  EXPECT_EQ(parse_bandwidth("400Gbps"), 50'000'000'000);
  EXPECT_EQ(parse_bandwidth("100Mb/s"), 12'500'000);
}

TEST(ParseBandwidth, refuses_what_does_not_say_how_much_of_what_in_which_time) {
  for (const char* text : {"24", "24/s", "24GB", "100Gb", "12GB/h", "/s", "B/s", "Gb/s", "12gb/s",
                           "-1GB/s", "12G/s", "1e30TB/s", ""}) {
    EXPECT_EQ(parse_bandwidth(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(ParseSeconds, knows_its_units) {
  EXPECT_EQ(parse_seconds("90s"), 90.0);
  EXPECT_EQ(parse_seconds("5m"), 300.0);
  EXPECT_EQ(parse_seconds("5min"), 300.0);
  EXPECT_EQ(parse_seconds("1.5h"), 5400.0);
  EXPECT_EQ(parse_seconds("500ms"), 0.5);
  EXPECT_EQ(parse_seconds("30"), 30.0);
  for (const char* text : {"", "s", "-1s", "5d", "fast"}) {
    EXPECT_EQ(parse_seconds(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(FormatBytes, chooses_the_unit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(12'025'908'429), "11.2 GiB");
  EXPECT_EQ(format_bytes(200LL << 20), "200 MiB");
  EXPECT_EQ(format_bytes(kUnlimited), "unlimited");
}

TEST(FormatTime, chooses_the_unit) {
  EXPECT_EQ(format_time(0), "0 ns");
  EXPECT_EQ(format_time(999), "999 ns");
  EXPECT_EQ(format_time(1'500), "1.500 us");
  EXPECT_EQ(format_time(3'720'000), "3.720 ms");
  EXPECT_EQ(format_time(250'000'000), "250.0 ms");
  EXPECT_EQ(format_time(12'000'000'000), "12.00 s");
}

TEST(FormatCount, groups_digits_by_three) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(25'259), "25,259");
  EXPECT_EQ(format_count(-1'234'567), "-1,234,567");
}

}  // namespace
}  // namespace emplace
