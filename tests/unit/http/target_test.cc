#include "server/http/target.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/violations.h"

namespace normlab::http {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Target, TakesAPathApart) {
  const auto target = ParseTarget("/api/v1/runs/01J8:cancel?a=1&b=x%20y+z&c");
  ASSERT_TRUE(target.ok());
  EXPECT_THAT(target->segments, ElementsAre("api", "v1", "runs", "01J8"));
  EXPECT_EQ(target->verb, "cancel");
  EXPECT_THAT(target->parameters, ElementsAre(Pair("a", "1"), Pair("b", "x y z"), Pair("c", "")));
}

TEST(Target, EscapedSeparatorsBelongToNames) {
  const auto target = ParseTarget("/api/v1/runs/a%2Fb%3Ac%25+d?x=a%26b%3Dc");
  ASSERT_TRUE(target.ok());
  EXPECT_THAT(target->segments, ElementsAre("api", "v1", "runs", "a/b:c%+d"));
  EXPECT_EQ(target->verb, "");
  EXPECT_THAT(target->parameters, ElementsAre(Pair("x", "a&b=c")));
}

TEST(Target, DecodesOnce) {
  const auto target = ParseTarget("/%2541");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->path, "/%41");
}

TEST(Target, RefusesWhatIsMalformed) {
  for (const char* bad : {"", "runs", "http://x/", "/%", "/%4", "/%zz", "/a%00b", "/%ff", "/%0a",
                          "/?x=%", "/?x=%0d%0a", "/?%c3=1", "/%c3/%a9"}) {
    EXPECT_FALSE(ParseTarget(bad).ok()) << bad;
  }
}

TEST(Query, ReadsEveryType) {
  const Parameters parameters = {{"names", "loss,,gradient_norm"},
                                 {"names", "x"},
                                 {"maxPoints", "2000"},
                                 {"from", "-9007199254740993"},
                                 {"tail", ""},
                                 {"all", "false"},
                                 {"resume", "s:1"}};
  Query query(parameters);
  EXPECT_THAT(query.List("names"), ElementsAre("loss", "gradient_norm", "x"));
  EXPECT_EQ(query.Int32("max_points"), 2000);
  EXPECT_EQ(query.Int64("from"), -9007199254740993);
  EXPECT_TRUE(query.Bool("tail"));
  EXPECT_FALSE(query.Bool("all"));
  EXPECT_EQ(query.Text("resume"), "s:1");
  EXPECT_EQ(query.Int64("to"), 0);
  EXPECT_TRUE(query.Done().ok());
}

TEST(Query, NamesEveryFaultAtOnce) {
  const Parameters parameters = {{"from", "x"},     {"max_points", "3000000000"},
                                 {"tail", "maybe"}, {"to", "1"},
                                 {"to", "2"},       {"max_point", "1"}};
  Query query(parameters);
  query.Int64("from");
  query.Int64("to");
  query.Int32("max_points");
  query.Bool("tail");
  const auto violations = domain::Violations(query.Done());
  ASSERT_EQ(violations.size(), 5u);
  EXPECT_EQ(violations[0], (domain::FieldViolation{"from", "\"x\" is not a whole number"}));
  EXPECT_EQ(violations[1], (domain::FieldViolation{"to", "given more than once"}));
  EXPECT_EQ(violations[2], (domain::FieldViolation{"max_points", "3000000000 is too large"}));
  EXPECT_EQ(violations[3].field, "tail");
  EXPECT_EQ(violations[4],
            (domain::FieldViolation{"max_point", "no such parameter, did you mean max_points?"}));
}

}  // namespace
}  // namespace normlab::http
