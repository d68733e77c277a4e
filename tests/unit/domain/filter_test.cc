#include "server/domain/filter.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/filter_values.h"
#include "server/domain/settings.h"
#include "server/domain/violations.h"

namespace normlab::domain {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The tree as text: (and (= state 3) (search free text)).
std::string Tree(const Filter& filter) {
  const auto inner = [&filter](const std::string& name) {
    std::string text("(");
    text.append(name);
    for (const Filter& term : filter.terms) text.append(1, ' ').append(Tree(term));
    return text + ")";
  };
  switch (filter.kind) {
    case Filter::Kind::kEverything:
      return "everything";
    case Filter::Kind::kAnd:
      return inner("and");
    case Filter::Kind::kOr:
      return inner("or");
    case Filter::Kind::kNot:
      return inner("not");
    case Filter::Kind::kSearch:
      return std::string("'").append(filter.value.text).append("'");
    case Filter::Kind::kComparison:
      break;
  }
  const char* const operators[] = {"=", "!=", "<", "<=", ">", ">=", ":"};
  std::string text = filter.field->name + operators[static_cast<int>(filter.op)];
  if (filter.value.any) return text + "*";
  switch (filter.field->type) {
    case FilterType::kText:
    case FilterType::kLabels:
      return text + filter.value.text;
    case FilterType::kNumber:
      return text + (filter.value.integer ? std::to_string(*filter.value.integer)
                                          : std::to_string(filter.value.number));
    case FilterType::kTime:
      return text + std::to_string(filter.value.first) + ".." + std::to_string(filter.value.last);
    case FilterType::kSwitch:
      return text + (filter.value.flag ? "true" : "false");
    case FilterType::kState:
      return text + v1::Run::State_Name(filter.value.state);
  }
  return text;
}

std::string Parsed(std::string_view text) {
  const absl::StatusOr<Filter> filter = ParseFilter(text);
  return filter.ok() ? Tree(*filter) : std::string(filter.status().message());
}

TEST(FilterTest, ReadsTheExampleOfTheApi) {
  EXPECT_EQ(Parsed("state=RUNNING user=lab1 loss<0.1 layers>=12 \"free text\""),
            "(and state=STATE_RUNNING user=lab1 final_loss<0.100000 layers>=12 'free text')");
  EXPECT_EQ(Parsed(""), "everything");
  EXPECT_EQ(Parsed(" \t\n"), "everything");
}

TEST(FilterTest, OrBindsTighterThanAndAndNotTightest) {
  EXPECT_EQ(Parsed("a b OR c d"), "(and 'a' (or 'b' 'c') 'd')");
  EXPECT_EQ(Parsed("a AND b OR c AND d"), "(and 'a' (or 'b' 'c') 'd')");
  EXPECT_EQ(Parsed("NOT a OR b"), "(or (not 'a') 'b')");
  EXPECT_EQ(Parsed("-a -state=failed"), "(and (not 'a') (not state=STATE_FAILED))");
  EXPECT_EQ(Parsed("NOT (a OR (b c))"), "(not (or 'a' (and 'b' 'c')))");
  EXPECT_EQ(Parsed("NOT NOT(a)"), "(not (not 'a'))");
}

TEST(FilterTest, WordsThatOnlyLookLikeMoreAreWords) {
  EXPECT_EQ(Parsed("and Or nota ANDY - a-b wow! don't"),
            "(and 'and' 'Or' 'nota' 'ANDY' '-' 'a-b' 'wow!' 'don't')");
  EXPECT_EQ(Parsed("Pre-Norm · 0.1"), "(and 'Pre-Norm' '·' '0.1')");
  EXPECT_EQ(Parsed("\"AND\" '=1+1'"), "(and 'AND' '=1+1')");
}

TEST(FilterTest, QuotesKeepAnything) {
  EXPECT_EQ(Parsed(R"(name="a \"b\" \\ (c) AND")"), R"(name=a "b" \ (c) AND)");
  EXPECT_EQ(Parsed("name:'<img onerror=\"x\">'"), "name:<img onerror=\"x\">");
  EXPECT_EQ(Parsed("notes=\"\" label=\"*\""), "(and notes= label=*)");
  EXPECT_EQ(Parsed("name=../../etc,x;'y"), "name=../../etc,x;'y");
}

TEST(FilterTest, OperatorsMayStandApart) {
  EXPECT_EQ(Parsed("loss < 0.5 seed != 3"), "(and final_loss<0.500000 seed!=3)");
  EXPECT_EQ(Parsed("layers>=2 layers <=3 layers>1"), "(and layers>=2 layers<=3 layers>1)");
}

TEST(FilterTest, NumbersOfEveryKind) {
  EXPECT_EQ(Parsed("learning_rate=1e-3"), "learning_rate=0.001000");
  EXPECT_EQ(Parsed("seed=9007199254740993"), "seed=9007199254740993");
  EXPECT_EQ(Parsed("loss=NaN"), "final_loss=nan");
  EXPECT_EQ(Parsed("loss!=nan"), "final_loss!=nan");
  EXPECT_EQ(Parsed("loss=Infinity loss>-inf loss=+Infinity"),
            "(and final_loss=inf final_loss>-inf final_loss=inf)");
  EXPECT_EQ(Parsed("loss>-.5 loss<+2"), "(and final_loss>-0.500000 final_loss<2)");
  EXPECT_EQ(Parsed("loss:*"), "final_loss:*");
  EXPECT_EQ(Parsed("loss:0.5"), "final_loss=0.500000");
  for (const char* text : {"loss=", "loss=x", "loss=0x1", "loss=1e999", "loss=nan(0)", "loss=-NaN",
                           "loss=1,5", "loss=1_000", "loss=+-1", "loss=\"\"", "loss=*"}) {
    EXPECT_FALSE(ParseFilter(text).ok()) << text;
  }
  EXPECT_THAT(Parsed("loss<NaN"), HasSubstr("use = or !="));
}

TEST(FilterTest, TimesAreSpans) {
  EXPECT_EQ(Parsed("created=1970-01-02"), "created=86400000000..172799999999");
  EXPECT_EQ(Parsed("created<1970-01-01T00:00:01Z"), "created<1000000..1999999");
  EXPECT_EQ(Parsed("ended>=1970-01-01T01:00:00.25+01:00"), "ended>=250000..259999");
  EXPECT_EQ(Parsed("started=1969-12-31T23:59:59.1234567Z"), "started=-876544..-876544");
  for (const char* text : {"2026-02-30", "2026-13-01", "26-01-01", "2026-01-01T24:00:00Z",
                           "2026-01-01T00:00:00", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00.Z",
                           "2026-01-01T00:00:00+1:00", "2026-01-01x", "yesterday"}) {
    EXPECT_THAT(Parsed(std::string("created>") + text), HasSubstr("is not a time")) << text;
  }
}

TEST(FilterTest, StatesInAnySpelling) {
  for (const char* text : {"timed-out", "TIMED_OUT", "STATE_TIMED_OUT", "Timed_Out"}) {
    EXPECT_EQ(Parsed(std::string("state=") + text), "state=STATE_TIMED_OUT");
  }
  EXPECT_THAT(Parsed("state=runing"), HasSubstr("did you mean running?"));
  EXPECT_THAT(Parsed("state=unspecified"), HasSubstr("is no state"));
  EXPECT_THAT(Parsed("state>running"), HasSubstr("no order"));
}

TEST(FilterTest, FaultsSayWhereAndWhatToDo) {
  EXPECT_THAT(Parsed("a lr=3"), StartsWith("filter: at character 3: there is no field \"lr\"; did "
                                           "you mean learning_rate?"));
  EXPECT_THAT(Parsed("é lr=3"), HasSubstr("at character 3"));  // not byte 4
  EXPECT_THAT(Parsed("(a"), HasSubstr("at character 1: this \"(\" has no \")\""));
  EXPECT_THAT(Parsed("a)"), HasSubstr("at character 2: there is a \")\" too many"));
  EXPECT_THAT(Parsed("()"), HasSubstr("nothing between"));
  EXPECT_THAT(Parsed("a AND"), HasSubstr("AND has nothing after it"));
  EXPECT_THAT(Parsed("OR a"), HasSubstr("OR has nothing before it"));
  EXPECT_THAT(Parsed("a OR"), HasSubstr("OR has nothing after it"));
  EXPECT_THAT(Parsed("NOT"), HasSubstr("NOT has nothing after it"));
  EXPECT_THAT(Parsed("name=\"a"), HasSubstr("quote is not closed"));
  EXPECT_THAT(Parsed("=1+1"), HasSubstr("put quotes around a text"));
  EXPECT_THAT(Parsed("name=a(b)"), HasSubstr("put quotes around"));
  EXPECT_THAT(Parsed("\"a\"b"), HasSubstr("put a space"));
  EXPECT_THAT(Parsed("name=*"), HasSubstr("write name:*"));
  EXPECT_THAT(Parsed("pinned=maybe"), HasSubstr("neither true nor false"));
  EXPECT_THAT(Parsed("a\x01"), HasSubstr("at character 2: a control character"));
  const absl::Status status = ParseFilter("lr=3").status();
  ASSERT_EQ(Violations(status).size(), 1u);
  EXPECT_EQ(Violations(status)[0].field, "filter");
}

TEST(FilterTest, LengthDepthAndCountAreBounded) {
  EXPECT_THAT(Parsed(std::string(kLongestFilter + 1, 'a')), HasSubstr("bytes long"));
  EXPECT_EQ(Parsed(std::string(kLongestFilter, 'a')).size(), kLongestFilter + 2);
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '(') + "a" +
           std::string(static_cast<size_t>(depth), ')');
  };
  EXPECT_EQ(Parsed(nested(kDeepestFilter - 1)), "'a'");
  EXPECT_THAT(Parsed(nested(kDeepestFilter)), HasSubstr("inside each other"));
  EXPECT_THAT(Parsed(std::string(2000, '(')), HasSubstr("inside each other"));
  EXPECT_THAT(Parsed(std::string(2000, '-') + "a"), HasSubstr("inside each other"));
  std::string many;
  for (int i = 0; i < kMostTerms; ++i) many += "a ";
  EXPECT_TRUE(ParseFilter(many).ok());
  EXPECT_THAT(Parsed(many + "a"), HasSubstr("more than 100 conditions"));
}

// Any text is either read or refused with a place; nothing is worse.
TEST(FilterTest, AnyTextIsReadOrRefused) {
  std::mt19937 random(7);
  const std::vector<std::string> pieces = {
      "loss",  "<",       "=",          ":",     "!",   "!=",   ">=",  " ", "(", ")",
      "\"",    "'",       "\\",         "-",     "AND", "OR",   "NOT", "*", "1", "NaN",
      "state", "created", "2026-11-30", "label", "é",   "\xff", "\t",  "x"};
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += pieces[random() % pieces.size()];
    const absl::StatusOr<Filter> filter = ParseFilter(text);
    read += filter.ok() ? 1 : 0;
    if (filter.ok()) continue;
    ASSERT_THAT(std::string(filter.status().message()), HasSubstr("character")) << text;
  }
  EXPECT_GT(read, 1000);
}

TEST(FilterTest, SaysWhatItMentions) {
  EXPECT_TRUE(Mentions(*ParseFilter("a (b OR -archived:*)"), "archived"));
  EXPECT_FALSE(Mentions(*ParseFilter("archived name=archived"), "archived"));
}

TEST(FilterFieldsTest, ThePageOfTheDocumentationHasTheTable) {
  std::ifstream file(NORMLAB_SOURCE_DIR "/docs/filters.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(page, HasSubstr(FilterFieldsToMarkdown()))
      << "its table of fields must be what normlab ls --fields prints";
}

TEST(FilterFieldsTest, EveryNameStandsForOneField) {
  std::set<std::string> names;
  for (const FilterField& field : FilterFields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    for (const std::string& other : field.other_names) {
      EXPECT_TRUE(names.insert(other).second) << other;
    }
    EXPECT_EQ(FindFilterField(field.name), &field);
  }
  for (const SettingInfo& setting : Settings()) {
    ASSERT_NE(FindFilterField(setting.name), nullptr);
    EXPECT_TRUE(FindFilterField(setting.name)->is_setting) << setting.name;
  }
  EXPECT_EQ(FindFilterField("Learning-Rate")->name, "learning_rate");
  EXPECT_EQ(FindFilterField("loss")->name, "final_loss");
}

}  // namespace
}  // namespace normlab::domain
