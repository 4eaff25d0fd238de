#include "io/collectives_file.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTable = R"(# NCCL, eight GPUs of one machine
op,devices,bytes,microseconds
all-reduce, 8, 1000000, 40

all-reduce,8,3000000,100
all-gather,8,1000000,15
)";

TEST(CollectivesFile, times_lie_on_lines_between_sizes) {
  const CollectiveTimes times = read_collectives(kTable, "table.csv");
  const auto at = [&](Collective op, int devices, double bytes) {
    return times.nanoseconds(op, devices, 1, bytes);
  };
  EXPECT_EQ(at(Collective::kAllReduce, 8, 1e6), 40'000);
  EXPECT_EQ(at(Collective::kAllReduce, 8, 2e6), 70'000);
  EXPECT_EQ(at(Collective::kAllReduce, 8, 10), 40'000) << "as long as the smallest";
  EXPECT_EQ(at(Collective::kAllReduce, 8, 6e6), 200'000) << "at the bandwidth of the largest";
  EXPECT_EQ(at(Collective::kReduceScatter, 8, 2e6), 35'000) << "half of what was measured";
  EXPECT_EQ(at(Collective::kAllGather, 8, 1e6), 15'000);
  EXPECT_EQ(at(Collective::kAllReduce, 4, 1e6), std::nullopt);
  EXPECT_EQ(times.nanoseconds(Collective::kAllReduce, 8, 2, 1e6), 40'000)
      << "the table does not say on how many machines";
}

// Rows of the shape that vTrain and Aceso publish, put into ours by the commands of the page.
TEST(CollectivesFile, published_measurements_are_read_as_the_page_says) {
  testing::TemporaryFolder folder;
  folder.write("allreduce_a100_8gpus",
               "size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)\n"
               "1048576,262144,float,51400,30.60,52740,29.82\n"
               "8589934592,2147483648,float,64940000,72.66,63760000,74.01\n");
  folder.write("prim_gpt_2_6B_all_gather_8gpus.csv",
               "data_size(MB),time(ms)\n12,1.076\n512,30.5\n");
  std::ifstream page(EMPLACE_SOURCE_DIR "/docs/partitioning.md");
  std::string script = "set -e; cd '" + folder.path("") + "'; gzip allreduce_a100_8gpus; ";
  for (std::string line; std::getline(page, line);) {
    const bool is_command = line.find("table.csv") != std::string::npos &&
                            (line.starts_with("echo op,") || line.find("awk") != std::string::npos);
    if (is_command) script += line.substr(0, line.find("  #")) + "; ";
  }
  ASSERT_EQ(std::system(script.c_str()), 0) << script;
  const CollectiveTimes times = read_collectives_file(folder.path("table.csv"));
  const auto at = [&](Collective op, double bytes) { return times.nanoseconds(op, 8, 1, bytes); };
  EXPECT_EQ(at(Collective::kAllReduce, 1 << 20), 51'400);
  EXPECT_EQ(at(Collective::kAllReduce, 8589934592.0), 64'940'000);
  // A device has 12 MB of 96 before it.
  EXPECT_EQ(at(Collective::kAllGather, 8.0 * 12 * (1 << 20)), 1'076'000);
  EXPECT_EQ(at(Collective::kAllGather, 8.0 * 512 * (1 << 20)), 30'500'000);
}

TEST(CollectivesFile, machines_are_a_column_of_their_own) {
  const CollectiveTimes times = read_collectives(
      "op,devices,bytes,microseconds,machines\nreduce-scatter,16,8,2.5,2\n", "table.csv");
  EXPECT_EQ(times.nanoseconds(Collective::kReduceScatter, 16, 2, 8), 2500);
  EXPECT_EQ(times.nanoseconds(Collective::kReduceScatter, 16, 1, 8), std::nullopt);
}

std::string row_error(const std::string& row) {
  const std::string text = "op,devices,bytes,microseconds\n# here\n" + row + "\n";
  return error_text([&] { read_collectives(text, "table.csv"); });
}

TEST(CollectivesFile, errors_name_the_file_and_the_line) {
  EXPECT_THAT(row_error("all-to-none,2,8,1"), HasSubstr("table.csv, line 3: op: 'all-to-none'"));
  EXPECT_THAT(row_error("all-reduce,1,8,1"),
              HasSubstr("line 3: devices: '1' is not a number from 2"));
  EXPECT_THAT(row_error("all-reduce,2,0,1"), HasSubstr("line 3: bytes: '0'"));
  EXPECT_THAT(row_error("all-reduce,2,8,nan"), HasSubstr("line 3: microseconds: 'nan'"));
  EXPECT_THAT(row_error("all-reduce,2,8,1 ms"), HasSubstr("line 3: microseconds: '1 ms'"));
  EXPECT_THAT(row_error("all-reduce,2,8"), HasSubstr("line 3: has 3 fields; expected 4"));
  EXPECT_THAT(row_error("all-reduce,2,8,1\nall-reduce,2,8,2"), HasSubstr("line 4"));
  EXPECT_THAT(error_text([] { read_collectives("size,time\n", "t.csv"); }),
              HasSubstr("t.csv, line 1: expected the header op,devices,bytes,microseconds"));
  EXPECT_THAT(error_text([] { read_collectives("# nothing\n", "t.csv"); }),
              HasSubstr("t.csv: has no measured collectives"));
}

}  // namespace
}  // namespace emplace
