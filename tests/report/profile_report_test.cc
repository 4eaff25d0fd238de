#include "report/profile_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/error_text.h"
#include "support/fork.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

ProfilePhase some_phase(Nanoseconds step) {
  ProfilePhase phase;
  phase.kinds.push_back(
      {.step = step, .ops = {0, 100, 200}, .temporary = {0, 0, 4096}, .busy_ops = {0, 110, 230}});
  phase.kinds.push_back({.step = 2 * step, .ops = {0, 1, 2}, .temporary = {0, 0, 0}});
  phase.links = {{{4096, 1000}, {16384, 4000, true}}, {}};
  phase.reference = 12'345'678'901;
  return phase;
}

std::string header_of(const ProfileSettings& settings = {}, int devices = 2) {
  return phases_header(*fork_graph(), Cluster(gpu_cluster(devices)), settings);
}

TEST(ProfilePhases, are_read_as_they_were_written) {
  const std::string header = header_of();
  const std::vector<ProfilePhase> written = {some_phase(310), some_phase(330)};
  const std::vector<ProfilePhase> read =
      parse_phases(header + phase_line(written[0]) + phase_line(written[1]), header);
  ASSERT_THAT(read, SizeIs(2));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(phase_line(read[i]), phase_line(written[i]));
    EXPECT_EQ(read[i].reference, 12'345'678'901);
    ASSERT_THAT(read[i].kinds, SizeIs(2));
    EXPECT_EQ(read[i].kinds[0].ops, written[i].kinds[0].ops);
    EXPECT_EQ(read[i].kinds[0].busy_ops, written[i].kinds[0].busy_ops);
    EXPECT_EQ(read[i].kinds[0].temporary, written[i].kinds[0].temporary);
    EXPECT_THAT(read[i].kinds[1].busy_ops, IsEmpty());
    ASSERT_THAT(read[i].links, SizeIs(2));
    ASSERT_THAT(read[i].links[0], SizeIs(2));
    EXPECT_EQ(read[i].links[0][1].bytes, 16384);
    EXPECT_EQ(read[i].links[0][1].time, 4000);
    EXPECT_FALSE(read[i].links[0][0].within_step);
    EXPECT_TRUE(read[i].links[0][1].within_step);
  }
  EXPECT_THAT(parse_phases(header, header), IsEmpty());
}

TEST(ProfilePhases, a_last_line_that_is_not_whole_is_left_out) {
  const std::string header = header_of();
  std::string content = header + phase_line(some_phase(310)) + phase_line(some_phase(330));
  content.resize(content.size() - 20);
  EXPECT_THAT(parse_phases(content, header), SizeIs(1));
}

TEST(ProfilePhases, of_anything_else_are_refused) {
  const std::string content = header_of() + phase_line(some_phase(310));
  const auto error = [&](const std::string& header) {
    return error_text([&] { parse_phases(content, header); });
  };
  EXPECT_THAT(error(header_of()), IsEmpty());
  for (const std::string& other :
       {header_of({.measure = {.steps = 9}}), header_of({.busy = false}), header_of({}, 3),
        phases_header(*fork_graph(7), Cluster(gpu_cluster(4)), {})}) {
    EXPECT_THAT(error(other), HasSubstr("of another model, cluster or setting"));
  }
  EXPECT_THAT(error_text([&] { parse_phases("", header_of()); }), HasSubstr("another model"));
}

TEST(ProfilePhases, that_make_no_sense_are_counted) {
  const std::string header = header_of();
  const std::string first = header + phase_line(some_phase(310));
  EXPECT_THAT(error_text([&] { parse_phases(first + "{\"kinds\": 3}\n", header); }),
              HasSubstr("phase 2"));
  EXPECT_THAT(error_text([&] { parse_phases(first + "nonsense\n", header); }),
              HasSubstr("phase 2"));
  for (const std::string number : {"1e300", "18446744073709551615"}) {
    const std::string line = "{\"reference_ns\": " + number + "}\n";
    EXPECT_THAT(error_text([&] { parse_phases(first + line, header); }),
                AllOf(HasSubstr("phase 2"), HasSubstr("whole number")));
  }
}

Profile some_profile() {
  Profile profile;
  profile.kinds.push_back({.kind = "cpu-3cores",
                           .device = "cpu0",
                           .step = {.median = 120'000'000, .low = 118'000'000, .high = 124'000'000},
                           .ops = 110'000'000,
                           .gap = 5000,
                           .busy_ratio = 1.25});
  profile.links.push_back({.from = "*",
                           .to = "*",
                           .fit = {.latency = 4000, .bandwidth = 6'500'000'000, .error = 0.12},
                           .measured = true});
  profile.links.push_back({.from = "cpu0",
                           .to = "cpu1",
                           .fit = {.latency = 50'000, .bandwidth = 1'000'000'000},
                           .throttled = true});
  profile.links.push_back({.from = "gpu*", .to = "gpu*", .fit = {.latency = 1, .bandwidth = 1}});
  profile.drift = 1.034;
  return profile;
}

TEST(ProfileReport, says_where_what_transfers_cost_is_not_settled) {
  Profile profile = some_profile();
  profile.transfers = {.proposals = 2, .near = true};
  EXPECT_THAT(to_text(profile), Not(HasSubstr("beside the links")));
  profile.transfers = {.proposals = 8, .error = -0.2};
  EXPECT_THAT(to_text(profile), AllOf(HasSubstr("not settled"), HasSubstr("last of 8"),
                                      HasSubstr("25.0 % longer than predicted")));
  profile.transfers = {.proposals = 8, .error = 0.25};
  EXPECT_THAT(to_text(profile), HasSubstr("20.0 % less than predicted"));
  profile.transfers = {.proposals = 1, .failed = true};
  EXPECT_THAT(to_text(profile), HasSubstr("failed, so what transfers take"));
}

TEST(ProfileReport, tells_people_all_that_was_measured) {
  const std::string text = to_text(some_profile());
  EXPECT_THAT(text, AllOf(HasSubstr("cpu-3cores"), HasSubstr("120.0 ms"), HasSubstr("110.0 ms"),
                          HasSubstr("5.000 us"), HasSubstr("+25.0 %"), HasSubstr("6.50 GB/s"),
                          HasSubstr("12 %"), HasSubstr("throttled"), HasSubstr("not used"),
                          HasSubstr("3.4 % longer")));
  Profile alone = some_profile();
  alone.links.clear();
  alone.kinds[0].busy_ratio = 0;
  EXPECT_THAT(to_text(alone), AllOf(Not(HasSubstr("GB/s")), Not(HasSubstr("+25"))));
}

TEST(ProfileReport, tells_programs_the_same) {
  const auto json = nlohmann::json::parse(to_json(some_profile()));
  EXPECT_EQ(json["kinds"][0]["kind"], "cpu-3cores");
  EXPECT_EQ(json["kinds"][0]["step_ms"], 120.0);
  EXPECT_EQ(json["kinds"][0]["gap_us"], 5.0);
  EXPECT_EQ(json["kinds"][0]["busy_ratio"], 1.25);
  EXPECT_EQ(json["links"][0]["measured"], true);
  EXPECT_EQ(json["links"][0]["bandwidth"], 6'500'000'000);
  EXPECT_EQ(json["links"][1]["measured"], false);
  EXPECT_EQ(json["drift"], 1.034);
}

}  // namespace
}  // namespace emplace
