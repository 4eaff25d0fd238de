#include "search/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/spec_in_effect.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Greeter {
  virtual ~Greeter() = default;
  virtual std::string greet() const = 0;
};

class Loud final : public Greeter {
 public:
  struct Options {
    std::int64_t marks = 1;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.integer("marks", &Options::marks, 1, 5, "At the end.");
  }
  explicit Loud(const Options& options) : options_(options) {}
  std::string greet() const override {
    return "HELLO" + std::string(static_cast<std::size_t>(options_.marks), '!');
  }

 private:
  Options options_;
};

class Plain final : public Greeter {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit Plain(const Options&) {}
  std::string greet() const override { return "hello"; }
};

Registry<Greeter> greeters() {
  Registry<Greeter> registry("greeter");
  registry.add<Loud>({.key = "loud", .family = "rude", .summary = "Shouts.", .reference = "a"});
  registry.add<Plain>({.key = "warm", .family = "polite", .summary = "Smiles.", .reference = "b"});
  registry.add<Plain>({.key = "cool", .family = "polite", .summary = "Nods.", .reference = "c"});
  return registry;
}

std::vector<std::string> keys(const Registry<Greeter>& registry) {
  std::vector<std::string> found;
  for (const MethodInfo* info : registry.list()) found.push_back(info->key);
  return found;
}

TEST(MethodSpec, says_what_is_in_effect_whatever_was_written) {
  const auto option = [](const char* name, const char* type, const char* usual, const char* paper) {
    OptionInfo info;
    info.name = name;
    info.type = type;
    info.default_value = usual;
    info.paper = paper;
    return info;
  };
  const std::vector<OptionInfo> options{
      option("preset", "choice", "emplace", "paper"), option("rounds", "integer", "8", "20"),
      option("rate", "real", "0.5", "0.5"), option("exact", "flag", "true", "false")};
  const auto text = [&](const char* spec) {
    return in_effect(MethodSpec::parse(spec), options).to_string();
  };
  EXPECT_EQ(text("m"), "m");
  EXPECT_EQ(text("m(rate=0.50,rounds=08,exact=yes)"), "m");
  EXPECT_EQ(text("m(exact=no,rounds=9)"), "m(rounds=9,exact=false)");
  EXPECT_EQ(text("m(rounds=9,rounds=8)"), "m") << "the last counts";
  EXPECT_EQ(text("m(preset=paper)"), "m(rounds=20,exact=false)");
  EXPECT_EQ(text("m(preset=paper,rounds=8)"), "m(exact=false)");
}

TEST(Registry, lists_by_family_and_key) {
  EXPECT_THAT(keys(greeters()), ElementsAre("cool", "warm", "loud"));
}

TEST(Registry, makes_what_a_spec_asks_for) {
  const Registry<Greeter> registry = greeters();
  EXPECT_EQ(registry.make({"loud", {}})->greet(), "HELLO!");
  EXPECT_EQ(registry.make(MethodSpec::parse("loud(marks=3)"))->greet(), "HELLO!!!");
  EXPECT_EQ(registry.make({"cool", {}})->greet(), "hello");
}

TEST(Registry, describes_options_as_the_class_declares_them) {
  const Registry<Greeter> registry = greeters();
  ASSERT_EQ(registry.info("loud").options.size(), 1U);
  const OptionInfo& marks = registry.info("loud").options[0];
  EXPECT_EQ(marks.name, "marks");
  EXPECT_EQ(marks.default_value, "1");
  EXPECT_EQ(marks.range, "1 to 5");
  EXPECT_TRUE(registry.info("cool").options.empty());
}

TEST(Registry, says_what_there_is_when_a_key_is_unknown) {
  const Registry<Greeter> registry = greeters();
  const std::string near = error_text([&] { registry.make({"lout", {}}); });
  EXPECT_THAT(near, AllOf(HasSubstr("unknown greeter 'lout'"), HasSubstr("did you mean 'loud'"),
                          HasSubstr("expected one of: cool, loud, warm")));
  const std::string far = error_text([&] { registry.info("bashful"); });
  EXPECT_THAT(far, AllOf(HasSubstr("unknown greeter 'bashful'"), Not(HasSubstr("did you mean"))));
}

TEST(Registry, names_the_method_and_the_option_that_is_wrong) {
  const Registry<Greeter> registry = greeters();
  EXPECT_THAT(error_text([&] { registry.make(MethodSpec::parse("loud(marks=9)")); }),
              AllOf(HasSubstr("greeter 'loud'"), HasSubstr("'marks'"), HasSubstr("1 to 5")));
  EXPECT_THAT(error_text([&] { registry.make(MethodSpec::parse("cool(marks=1)")); }),
              AllOf(HasSubstr("greeter 'cool'"), HasSubstr("'marks'")));
}

TEST(MethodSpec, is_a_name_with_options) {
  EXPECT_EQ(MethodSpec::parse("heft"), (MethodSpec{"heft", {}}));
  EXPECT_EQ(MethodSpec::parse("heft()"), (MethodSpec{"heft", {}}));
  EXPECT_EQ(MethodSpec::parse(" metis ( imbalance = 1.1 , method=kway ) "),
            (MethodSpec{"metis", {{"imbalance", "1.1"}, {"method", "kway"}}}));
  EXPECT_EQ(MethodSpec::parse("gdp(policy=)"), (MethodSpec{"gdp", {{"policy", ""}}}));
  EXPECT_EQ(MethodSpec::parse("gdp(policy=a=b)"), (MethodSpec{"gdp", {{"policy", "a=b"}}}));
}

TEST(MethodSpec, may_have_commas_and_parentheses_within_quotes) {
  EXPECT_EQ(MethodSpec::parse("exec(command='run f(1,2)',grace=3)"),
            (MethodSpec{"exec", {{"command", "run f(1,2)"}, {"grace", "3"}}}));
  EXPECT_EQ(MethodSpec::parse("exec(command=sh -c 'a, b')"),
            (MethodSpec{"exec", {{"command", "sh -c 'a, b'"}}}));
  EXPECT_EQ(MethodSpec::parse("gdp(policy=don't)"), (MethodSpec{"gdp", {{"policy", "don't"}}}));
  EXPECT_EQ(split_specs("exec(command='a),b'),heft").size(), 2U);
}

TEST(MethodSpec, is_written_as_it_is_read) {
  for (const std::string value : {"", "plain", "a b", " spaced ", "f(1,2)", "a)", "sh -c 'a, b'",
                                  "say \"x\"", "sh -c 'echo \"x, y\"'"}) {
    const MethodSpec spec{"exec", {{"command", value}, {"grace", "3"}}};
    EXPECT_EQ(MethodSpec::parse(spec.to_string()), spec) << spec.to_string();
    EXPECT_EQ(split_specs(spec.to_string() + ",heft").size(), 2U) << spec.to_string();
  }
}

TEST(MethodSpec, reads_what_it_writes) {
  for (const char* text : {"heft", "metis(imbalance=1.1,method=kway)"}) {
    EXPECT_EQ(MethodSpec::parse(text).to_string(), text);
  }
}

TEST(MethodSpec, shows_where_the_text_stops_making_sense) {
  const auto error = [](const char* text) { return error_text([&] { MethodSpec::parse(text); }); };
  EXPECT_THAT(error(""), HasSubstr("'': expected a name"));
  EXPECT_THAT(error("(a=1)"), HasSubstr("'(a=1)': expected a name"));
  EXPECT_THAT(error("heft(a=1"), HasSubstr("expected ')' at the end"));
  EXPECT_THAT(error("heft(a=1) more"), HasSubstr("expected ')' at the end"));
  EXPECT_THAT(error("heft(fast)"), HasSubstr("expected option=value instead of 'fast'"));
  EXPECT_THAT(error("heft(a=1,,b=2)"), HasSubstr("expected option=value instead of ''"));
  EXPECT_THAT(error("heft(=1)"), HasSubstr("expected option=value instead of '=1'"));
}

TEST(SplitSpecs, splits_at_commas_outside_of_parentheses) {
  EXPECT_THAT(split_specs("heft"), ElementsAre("heft"));
  EXPECT_THAT(split_specs("heft,metis(imbalance=1.1,method=kway),all"),
              ElementsAre("heft", "metis(imbalance=1.1,method=kway)", "all"));
  EXPECT_THAT(split_specs("heft,"), ElementsAre("heft", ""));
}

}  // namespace
}  // namespace emplace
