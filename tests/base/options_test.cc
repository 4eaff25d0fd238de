#include "base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace emplace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Sample {
  std::int64_t groups = 8;
  double balance = 1.5;
  bool refine = true;
  std::string order = "bfs";
  std::string file = {};
};

OptionSchema<Sample> schema() {
  return OptionSchema<Sample>{}
      .integer("groups", &Sample::groups, 1, 100, "How many.")
      .real("balance", &Sample::balance, 1, 10, "Largest over mean.")
      .flag("refine", &Sample::refine, "Refine.")
      .choice("order", &Sample::order, {"bfs", "dfs"}, "Which order.")
      .text("file", &Sample::file, "a file", "Read it.");
}

std::string message_of(const OptionValues& values) {
  try {
    schema().read(values);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOption);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

TEST(OptionSchema, leaves_the_defaults_where_nothing_is_said) {
  const Sample options = schema().read({});
  EXPECT_EQ(options.groups, 8);
  EXPECT_EQ(options.balance, 1.5);
  EXPECT_TRUE(options.refine);
  EXPECT_EQ(options.order, "bfs");
}

TEST(OptionSchema, reads_each_type_and_lets_the_last_value_win) {
  const Sample options = schema().read({{"groups", "5"},
                                        {"balance", "2.25"},
                                        {"refine", "false"},
                                        {"order", "dfs"},
                                        {"groups", "6"}});
  EXPECT_EQ(options.groups, 6);
  EXPECT_EQ(options.balance, 2.25);
  EXPECT_FALSE(options.refine);
  EXPECT_EQ(options.order, "dfs");
}

TEST(OptionSchema, takes_any_text_as_it_is) {
  EXPECT_EQ(schema().read({}).file, "");
  EXPECT_EQ(schema().read({{"file", "../My file.policy"}}).file, "../My file.policy");
  const OptionInfo info = schema().describe().back();
  EXPECT_EQ(info.type, "text");
  EXPECT_EQ(info.default_value, "");
  EXPECT_EQ(info.range, "a file");
}

TEST(OptionSchema, takes_both_ends_of_a_range) {
  EXPECT_EQ(schema().read({{"groups", "1"}}).groups, 1);
  EXPECT_EQ(schema().read({{"groups", "100"}}).groups, 100);
  EXPECT_EQ(schema().read({{"balance", "1"}}).balance, 1);
  EXPECT_EQ(schema().read({{"balance", "1e1"}}).balance, 10);
}

TEST(OptionSchema, refuses_bad_values_with_the_option_the_value_and_what_was_expected) {
  for (const char* text : {"0", "101", "-5", "1.5", "abc", "", "5 ", "99999999999999999999"}) {
    EXPECT_THAT(message_of({{"groups", text}}),
                AllOf(HasSubstr("'groups'"), HasSubstr(text), HasSubstr("1 to 100")));
  }
  for (const char* text : {"0.99", "10.01", "nan", "inf", "x", ""}) {
    EXPECT_THAT(message_of({{"balance", text}}),
                AllOf(HasSubstr("'balance'"), HasSubstr(text), HasSubstr("1 to 10")));
  }
  EXPECT_THAT(message_of({{"refine", "maybe"}}), AllOf(HasSubstr("'refine'"), HasSubstr("maybe")));
  EXPECT_THAT(message_of({{"order", "BFS"}}), AllOf(HasSubstr("'order'"), HasSubstr("bfs, dfs")));
}

TEST(OptionSchema, names_the_options_that_exist_and_the_nearest_one) {
  EXPECT_THAT(message_of({{"group", "5"}}),
              AllOf(HasSubstr("'group'"), HasSubstr("did you mean 'groups'?"),
                    HasSubstr("groups, balance, refine, order")));
  EXPECT_THAT(message_of({{"temperature", "5"}}), Not(HasSubstr("did you mean")));
  struct Nothing {};
  EXPECT_THROW(OptionSchema<Nothing>{}.read({{"x", "1"}}), Error);
}

TEST(OptionSchema, describes_every_option) {
  const std::vector<OptionInfo> infos = schema().describe();
  ASSERT_EQ(infos.size(), 5U);
  EXPECT_EQ(infos[0].name, "groups");
  EXPECT_EQ(infos[0].type, "integer");
  EXPECT_EQ(infos[0].default_value, "8");
  EXPECT_EQ(infos[0].range, "1 to 100");
  EXPECT_EQ(infos[0].help, "How many.");
  EXPECT_EQ(infos[1].type, "real");
  EXPECT_EQ(infos[1].default_value, "1.5");
  EXPECT_EQ(infos[2].type, "flag");
  EXPECT_EQ(infos[2].default_value, "true");
  EXPECT_EQ(infos[3].type, "choice");
  EXPECT_EQ(infos[3].range, "bfs, dfs");
}

enum class Order { kTime, kBytes };

struct Inner {
  std::int64_t rounds = 3;
  Order order = Order::kBytes;
};
struct Middle {
  Inner inner = {.rounds = 4};
  bool forward = true;
};
struct Base {
  double share = 0.5;
};
struct Outer : Base {
  Middle middle = {};
};

OptionSchema<Outer> nested_schema() {
  return OptionSchema<Outer>{}
      .integer("rounds", nested(&Outer::middle, &Middle::inner, &Inner::rounds), 1, 10, "Rounds.")
      .choice("order", nested(&Outer::middle, &Middle::inner, &Inner::order),
              {{"time", Order::kTime}, {"bytes", Order::kBytes}}, "Order.")
      .choice("way", nested(&Outer::middle, &Middle::forward),
              {{"forward", true}, {"backward", false}}, "Way.")
      .real(
          "share", [](Outer& options) -> double& { return options.share; }, 0, 1, "Share.");
}

TEST(OptionSchema, binds_members_of_members_and_named_values) {
  const Outer defaults = nested_schema().read({});
  EXPECT_EQ(defaults.middle.inner.rounds, 4);
  EXPECT_EQ(defaults.middle.inner.order, Order::kBytes);
  const Outer options = nested_schema().read(
      {{"rounds", "7"}, {"order", "time"}, {"way", "backward"}, {"share", "0.25"}});
  EXPECT_EQ(options.middle.inner.rounds, 7);
  EXPECT_EQ(options.middle.inner.order, Order::kTime);
  EXPECT_FALSE(options.middle.forward);
  EXPECT_EQ(options.share, 0.25);
}

TEST(OptionSchema, describes_named_values_like_any_choice) {
  const std::vector<OptionInfo> infos = nested_schema().describe();
  ASSERT_EQ(infos.size(), 4U);
  EXPECT_EQ(infos[0].default_value, "4");
  EXPECT_EQ(infos[1].type, "choice");
  EXPECT_EQ(infos[1].default_value, "bytes");
  EXPECT_EQ(infos[1].range, "time, bytes");
  EXPECT_EQ(infos[2].default_value, "forward");
  EXPECT_EQ(infos[3].default_value, "0.5");
}

TEST(OptionSchema, refuses_a_name_that_stands_for_no_value) {
  EXPECT_THROW(nested_schema().read({{"order", "size"}}), Error);
  EXPECT_THROW(nested_schema().read({{"way", "true"}}), Error);
}

TEST(OptionSchema, refuses_a_default_without_a_name) {
  EXPECT_THROW(OptionSchema<Outer>{}.choice("way", nested(&Outer::middle, &Middle::forward),
                                            {{"backward", false}}, "Way."),
               std::logic_error);
}

OptionSchema<Sample> published_schema() {
  return schema().paper({{"groups", "20"}, {"order", "dfs"}});
}

TEST(OptionSchema, begins_with_the_papers_values_where_asked) {
  EXPECT_EQ(published_schema().read({}).groups, 8);
  EXPECT_EQ(published_schema().read({{"preset", "emplace"}}).groups, 8);
  // Whatever is said beside the preset wins, also before it.
  const Sample paper = published_schema().read({{"order", "bfs"}, {"preset", "paper"}});
  EXPECT_EQ(paper.groups, 20);
  EXPECT_EQ(paper.order, "bfs");
  EXPECT_EQ(paper.balance, 1.5);
  EXPECT_THROW(published_schema().read({{"preset", "other"}}), Error);
  EXPECT_THROW(schema().read({{"preset", "paper"}}), Error);
}

TEST(OptionSchema, shows_the_papers_values_beside_the_defaults) {
  const std::vector<OptionInfo> infos = published_schema().describe();
  ASSERT_EQ(infos.size(), 6U);
  EXPECT_EQ(infos[0].name, "preset");
  EXPECT_EQ(infos[0].paper, "paper");
  EXPECT_EQ(infos[1].default_value, "8");
  EXPECT_EQ(infos[1].paper, "20");
  EXPECT_EQ(infos[2].paper, "1.5");
  EXPECT_EQ(schema().describe()[0].paper, "");
  EXPECT_THROW(schema().paper({{"group", "20"}}), Error);
  EXPECT_THROW(schema().paper({{"groups", "2000"}}), Error);
}

TEST(ReadFlag, knows_the_usual_words) {
  for (const char* text : {"true", "yes", "1"}) EXPECT_TRUE(read_flag("f", text)) << text;
  for (const char* text : {"false", "no", "0"}) EXPECT_FALSE(read_flag("f", text)) << text;
  EXPECT_THROW(read_flag("f", "TRUE"), Error);
}

TEST(Suggestion, is_silent_when_nothing_is_near) {
  EXPECT_EQ(suggestion("heft", {}), "");
  EXPECT_EQ(suggestion("x", {"round_robin", "critical_path"}), "");
  EXPECT_THAT(suggestion("hfet", {"dfs", "heft", "hash"}), HasSubstr("'heft'"));
  EXPECT_THAT(suggestion("3090", {"3000", "rtx3090"}), HasSubstr("'rtx3090'"));
  EXPECT_THAT(suggestion("a10g", {"a100", "a10"}), HasSubstr("'a10'"));
  EXPECT_THAT(suggestion("enc.layr", {"enc", "enc.layer"}), HasSubstr("'enc.layer'"));
}

}  // namespace
}  // namespace emplace
