#include "cluster/local_machine.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/control_group.h"
#include "cluster/cpu_speed.h"

#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LocalMachine, knows_cores_threads_nodes_and_caches) {
  const LocalMachine machine =
      synthetic_machine("package:2 [numa(memory=4GB)] l3:2(size=8MB) core:3 pu:2");
  ASSERT_EQ(machine.cores.size(), 12U);
  EXPECT_EQ(machine.num_threads(), 24);
  EXPECT_THAT(machine.cores[1].threads, ElementsAre(2, 3));
  ASSERT_EQ(machine.nodes.size(), 2U);
  EXPECT_EQ(machine.nodes[1].number, 1);
  EXPECT_EQ(machine.memory, machine.nodes[0].memory + machine.nodes[1].memory);
  EXPECT_GT(machine.nodes[0].memory, 0);
  std::set<int> caches;
  for (const LocalCore& core : machine.cores) caches.insert(core.last_cache);
  EXPECT_EQ(caches.size(), 4U);
  EXPECT_EQ(machine.cores[5].node, 0);
  EXPECT_EQ(machine.cores[6].node, 1);
  ASSERT_EQ(machine.caches.size(), 1U);
  EXPECT_EQ(machine.caches[0].level, 3);
  EXPECT_EQ(machine.caches[0].count, 4);
  EXPECT_THAT(machine_text(machine),
              ::testing::AllOf(HasSubstr("12 cores with 24 hardware threads"),
                               HasSubstr("2 nodes of memory"), HasSubstr("of L3")));
}

TEST(LocalMachine, refuses_what_is_no_topology) {
  EXPECT_THAT(error_text([] { synthetic_machine("cores:many"); }), HasSubstr("'cores:many'"));
}

TEST(LocalMachine, this_one_has_cores_that_this_process_may_use) {
  const LocalMachine machine = this_machine();
  ASSERT_FALSE(machine.cores.empty());
  EXPECT_GT(machine.memory, Bytes{1} << 20);
  EXPECT_GT(machine.gigahertz, 0.1);
  EXPECT_LT(machine.gigahertz, 20);
  EXPECT_GE(machine.float32_per_cycle, 8);
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (const LocalCore& core : machine.cores) {
    ASSERT_FALSE(core.threads.empty());
    for (const int thread : core.threads) {
      EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(thread), &allowed)) << thread;
    }
  }
}

// In a process of its own, whose only thread is bound: this one's others are not.
TEST(LocalMachine, obeys_the_affinity_of_the_process) {
  const int last = this_machine().cores.back().threads.back();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(last), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(1);
    const LocalMachine machine = this_machine();
    const bool alone = machine.cores.size() == 1 && machine.cores[0].threads == std::vector{last};
    _exit(alone ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

class ControlGroups : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  ControlGroup read(const std::string& membership) {
    return read_control_group(folder_.path(""), membership);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(ControlGroups, the_tightest_limit_on_the_way_holds) {
  write("cpu.max", "max 100000\n");
  write("pods/cpu.max", "250000 100000\n");
  write("pods/a/cpu.max", "400000 100000\n");
  write("pods/memory.max", "max\n");
  write("pods/a/memory.max", "1073741824\n");
  const ControlGroup limits = read("0::/pods/a\n");
  EXPECT_EQ(limits.cores, 2.5);
  EXPECT_EQ(limits.memory, Bytes{1} << 30);
  EXPECT_FALSE(read("0::/\n").cores.has_value());
  EXPECT_FALSE(read("0::/\n").memory.has_value());
}

TEST_F(ControlGroups, the_first_version_has_a_folder_a_controller) {
  write("cpu/job/cpu.cfs_quota_us", "300000\n");
  write("cpu/job/cpu.cfs_period_us", "100000\n");
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/job/memory.limit_in_bytes", "2147483648\n");
  const ControlGroup limits = read("4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/x\n");
  EXPECT_EQ(limits.cores, 3);
  EXPECT_EQ(limits.memory, Bytes{2} << 30);
  EXPECT_FALSE(read("3:cpuset:/job\n").cores.has_value());
}

TEST_F(ControlGroups, limit_nothing_where_they_are_not) {
  for (const char* membership : {"", "nonsense", "0::/gone/away\n", "0::/../..\n"}) {
    const ControlGroup limits = read(membership);
    EXPECT_FALSE(limits.cores.has_value());
    EXPECT_FALSE(limits.memory.has_value());
  }
}

TEST(CpuSpeed, comes_from_the_flags_and_the_nominal_frequency) {
  const CpuSpeed avx512 = parse_cpu_info(
      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel name\t: Xeon 8375C\n"
      "cpu MHz\t\t: 3499.9\nflags\t\t: fpu fma avx avx2 avx512f\nbogomips\t: 5800.0\n");
  EXPECT_EQ(avx512.name, "Xeon 8375C");
  EXPECT_DOUBLE_EQ(avx512.gigahertz, 2.9);
  EXPECT_EQ(avx512.float32_per_cycle, 64);
  const CpuSpeed zen4 = parse_cpu_info(
      "vendor_id : AuthenticAMD\ncpu family : 25\nflags : fma avx2 avx512f\ncpu MHz : 2400\n");
  EXPECT_EQ(zen4.float32_per_cycle, 32);
  EXPECT_DOUBLE_EQ(zen4.gigahertz, 2.4);
  const CpuSpeed zen5 =
      parse_cpu_info("vendor_id : AuthenticAMD\ncpu family : 26\nflags : fma avx2 avx512f\n");
  EXPECT_EQ(zen5.float32_per_cycle, 64);
}

TEST(CpuSpeed, without_wide_vectors_or_anything_at_all) {
  EXPECT_EQ(parse_cpu_info("flags : avx sse2\n").float32_per_cycle, 16);
  EXPECT_EQ(parse_cpu_info("flags : sse2 avx512fake fmaddsub\n").float32_per_cycle, 8);
  // Arm: BogoMIPS count a timer there.
  const CpuSpeed arm = parse_cpu_info("processor : 0\nBogoMIPS : 50.00\nFeatures : fp asimd\n");
  EXPECT_EQ(arm.float32_per_cycle, 16);
  EXPECT_DOUBLE_EQ(arm.gigahertz, 2.5);
  EXPECT_DOUBLE_EQ(parse_cpu_info("").gigahertz, 2.5);
}

}  // namespace
}  // namespace emplace
