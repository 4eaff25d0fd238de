// emplace run on several ranks, under mpirun: what one process computes and reports, and an end
// with a message whatever happens to a rank.
#include <filesystem>

#include <fmt/format.h>

#include "support/program.h"
#include "support/shared_core.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

#ifdef EMPLACE_LEARN  // what executes is in the library that links libtorch

constexpr const char* kThree =
    " zoo:stacked-rnn:batch=2,layers=2,hidden=8,sequence=3,input=8,classes=5 ";
constexpr const char* kMany = "--warm-up 0 --steps 1000000 ";

class RankExecution : public testing::Program {
 protected:
  void SetUp() override {
    const auto library = std::filesystem::path(EMPLACE_BINARY).parent_path() / "libemplace_mpi.so";
    if (!std::filesystem::exists(library)) GTEST_SKIP() << "built without MPI";
    folder_.write("three.yaml", cluster(""));
    folder_.write("slow.yaml", cluster(", throttled: true"));
    const CommandResult placed =
        run(std::string("place") + kThree + "-c three.yaml -p round_robin -q -o split.json");
    ASSERT_EQ(placed.exit_code, 0) << placed.err;
  }

  static std::string cluster(const std::string& link) {
    return fmt::format(R"(format: emplace.cluster/1
name: here
devices: [{{name: cpu, kind: cpu, count: 3, memory: 1GiB, runs_on: "cores {}"}}]
links: [{{bandwidth: 1MB/s, latency_us: 5, channel: out{}}}]
)",
                       usable_core(), link);
  }

  static std::string command(const std::string& file = "three.yaml") {
    return std::string("run") + kThree + "split.json -c " + file + " --seed 4 ";
  }

  // Starts it, does something to rank `rank`, and waits for the end. Prints what it was and how
  // long it took after.
  CommandResult done_to(int rank, const std::string& what, const std::string& arguments,
                        int seconds = 2) const {
    folder_.write("do.sh", fmt::format(R"(
{} {} > out.txt 2> err.txt &
launcher=$!
victim=
for i in $(seq 600); do
  sleep 0.1
  for mpirun in $(pgrep -P $launcher); do
    for process in $(pgrep -P $mpirun); do
      if tr '\0' '\n' < /proc/$process/environ | grep -qx OMPI_COMM_WORLD_RANK={}; then
        victim=$process
      fi
    done
  done
  # Well in the middle: the threads of devices and links are there.
  if [ -n "$victim" ] && [ $(ls /proc/$victim/task | wc -l) -gt 6 ]; then break; fi
done
sleep {}
kill -{} $victim
begin=$(date +%s)
wait $launcher
code=$?
echo $(($(date +%s) - begin))
cat err.txt >&2
kill -KILL $victim 2> /dev/null
exit $code
)",
                                       EMPLACE_BINARY, arguments, rank, seconds, what));
    return folder_.shell("bash do.sh");
  }
};

const std::string kFew = "--steps 3 --warm-up 1 ";

// The parts that do not depend on the machine's speed.
Json without_times(const Json& json) {
  Json keys = Json::array();
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

TEST_F(RankExecution, computes_and_reports_what_one_process_does) {
  const Json alone = json_of(command() + kFew);
  for (const int ranks : {2, 3}) {
    const Json together = json_of(command() + kFew + fmt::format("--ranks {}", ranks));
    EXPECT_EQ(together["losses"], alone["losses"]) << ranks;
    EXPECT_EQ(without_times(together), without_times(alone)) << ranks;
    ASSERT_EQ(together["devices"].size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_GT(together["devices"][i]["busy_ms"], 0.0) << ranks << " " << i;
      EXPECT_GE(together["devices"][i]["peak_bytes"], alone["devices"][i]["peak_bytes"]);
    }
    EXPECT_EQ(together["types"].size(), alone["types"].size());
    EXPECT_GT(together["oracle_ms"], 0.0);
    EXPECT_GT(together["drift"], 0.0);
  }
}

TEST_F(RankExecution, honours_throttled_links) {
  const Json json = json_of(command("slow.yaml") + kFew + "--ranks 3");
  const Json alone = json_of(command("slow.yaml") + kFew);
  EXPECT_EQ(json["losses"], alone["losses"]);
  // Nothing on these links is quicker than simulated.
  EXPECT_GE(json["step_ms"].get<double>(), 0.999 * json["oracle_ms"].get<double>());
}

TEST_F(RankExecution, writes_one_trace_of_all_devices) {
  const CommandResult result = run(command() + kFew + "--ranks 3 --trace trace.json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("measured "), HasSubstr("wrote trace.json")));
  const std::string text = Json::parse(folder_.read("trace.json")).dump();
  EXPECT_THAT(text, AllOf(HasSubstr("measured"), HasSubstr("cpu0"), HasSubstr("cpu2")));
}

TEST_F(RankExecution, goes_over_tcp) {
  const Json alone = json_of(command() + kFew);
  const CommandResult result = folder_.shell(
      "mpirun --allow-run-as-root --oversubscribe --bind-to none --enable-recovery "
      "--mca pml ob1 --mca btl tcp,self -n 2 " EMPLACE_BINARY " " +
      command() + kFew + "--json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["losses"], alone["losses"]);
}

TEST_F(RankExecution, more_ranks_than_devices_are_one_message) {
  expect_refused(command() + kFew + "--ranks 4", {"shared by 4 ranks; expected 1 to 3"});
  expect_refused(std::string("run") + kThree + "missing.json -c three.yaml --ranks 2",
                 {"missing.json"});
}

TEST_F(RankExecution, a_limit_that_one_rank_exceeds_is_everybodys) {
  std::string small = cluster("");
  small.replace(small.find("1GiB"), 4, "2KiB");
  folder_.write("small.yaml", small);
  const CommandResult result = run(command("small.yaml") + kFew + "--ranks 3 --limit-memory");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("memory runs out"), HasSubstr("op '")));
}

TEST_F(RankExecution, ends_soon_after_a_rank_was_killed) {
  const CommandResult result = done_to(1, "KILL", command() + kMany + "--ranks 3 --lost-after 2s");
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_THAT(folder_.read("out.txt"),
              AllOf(HasSubstr("rank 1, with device 'cpu1', is lost"), HasSubstr("2 s")));
  EXPECT_LE(std::stoi(result.out), 20);
}

TEST_F(RankExecution, ends_soon_after_rank_0_was_killed) {
  const CommandResult result = done_to(0, "KILL", command() + kMany + "--ranks 2 --lost-after 2s");
  EXPECT_NE(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 0 ended without an answer"));
  EXPECT_LE(std::stoi(result.out), 20);
}

TEST_F(RankExecution, ends_soon_after_a_rank_was_stopped) {
  const CommandResult result = done_to(1, "STOP", command() + kMany + "--ranks 2 --lost-after 4s");
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_THAT(folder_.read("out.txt"), HasSubstr("rank 1, with device")) << result.err;
  EXPECT_LE(std::stoi(result.out), 20);
}

TEST_F(RankExecution, an_interrupt_reports_what_was_timed) {
  const CommandResult result = done_to(0, "INT", command() + kMany + "--ranks 2", 10);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr("interrupted: "));
  EXPECT_THAT(folder_.read("out.txt"), HasSubstr("measured "));
}

#endif

}  // namespace
}  // namespace emplace
