#include "server/export/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/export/number_text.h"
#include "server/export/points_json.h"
#include "tests/non_finite.h"

namespace normlab::exporter {
namespace {

std::string Csv(const std::vector<Curve>& curves, const CsvOptions& options = {}) {
  std::string text;
  WriteCsv(curves, options, [&text](std::string_view piece) { text += piece; });
  return text;
}

TEST(CsvTest, ArticleHasItsFiveColumnsAndRunsInTheOrderGiven) {
  const Curve post = {"02", "Post-Norm · no warmup", "", {{"loss", {1}, {4.25}}}};
  const Curve pre = {"01",
                     "Pre-Norm · no warmup",
                     "",
                     {{"loss", {1, 2}, {4.167722702026367, 0.1}},
                      {"gradient_norm", {1, 2}, {0.5, 1e-9}},
                      {"learning_rate", {1, 2}, {0.002, 0.002}},
                      {"tokens_per_second", {1}, {10}}}};
  EXPECT_EQ(Csv({post, pre}, {.main_series_only = true}),
            "run,step,loss,gradient_norm,learning_rate\n"
            "Post-Norm · no warmup,1,4.25,,\n"
            "Pre-Norm · no warmup,1,4.167722702026367,0.5,0.002\n"
            "Pre-Norm · no warmup,2,0.1,1e-09,0.002\n");
}

TEST(CsvTest, TextsThatASpreadsheetWouldRunAreMarkedAndCanBeReadBack) {
  for (const auto& [name, cell] : std::vector<std::pair<std::string, std::string>>{
           {"=1+1", "'=1+1"},
           {"+x", "'+x"},
           {"-x", "'-x"},
           {"@x", "'@x"},
           {"'=x", "''=x"},
           {"a=b", "a=b"},
           {"=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""}}) {
    const Curve curve = {"01", name, "", {{"loss", {1}, {-0.5}}, {"=s", {1}, {2}}}};
    EXPECT_EQ(Csv({curve}), "run,step,loss,gradient_norm,learning_rate,'=s\n" + cell +
                                ",1,-0.5,,,2\n");
  }
}

TEST(CsvTest, OtherSeriesFollowAndMissingStepsAreEmptyCells) {
  const Curve curve = {
      "01", "a", "", {{"block/0/gradient_norm", {2, 3}, {7, 8}}, {"loss", {1, 2, 4}, {1, 2, 4}}}};
  EXPECT_EQ(Csv({curve}),
            "run,step,loss,gradient_norm,learning_rate,block/0/gradient_norm\n"
            "a,1,1,,,\n"
            "a,2,2,,,7\n"
            "a,3,,,,8\n"
            "a,4,4,,,\n");
}

TEST(CsvTest, NonFiniteValuesAreWords) {
  const Curve curve = {"01", "a", "", {{"loss", {1, 2, 3}, {kNan, kInfinity, -kInfinity}}}};
  EXPECT_EQ(Csv({curve}, {.main_series_only = true}),
            "run,step,loss,gradient_norm,learning_rate\n"
            "a,1,NaN,,\na,2,Infinity,,\na,3,-Infinity,,\n");
}

TEST(CsvTest, RowsAreWrittenAsTheirPointsArrive) {
  std::string text;
  CsvWriter csv(CsvColumns({"loss", "extra, quoted"}), {.with_id = true, .with_attempt = true},
                [&text](std::string_view piece) { text += piece; });
  csv.Write({"01", "a"}, 1, {{"extra, quoted", {2}, {5}}, {"loss", {1, 2}, {kNan, 4}}});
  csv.Write({"01", "a"}, 1, {});
  csv.Write({"01", "a"}, 2, {{"loss", {2}, {-kInfinity}}, {"not a column", {2}, {1}}});
  csv.Flush();
  EXPECT_EQ(text,
            "run,run_id,attempt,step,loss,gradient_norm,learning_rate,\"extra, quoted\"\n"
            "a,01,1,1,NaN,,,\n"
            "a,01,1,2,4,,,5\n"
            "a,01,2,2,-Infinity,,,\n");
  EXPECT_EQ(csv.rows(), 3);
}

TEST(CsvTest, NamesAreQuotedWhereTheyMustBeAndFormulasMarked) {
  const Curve comma = {"01", "lr 1e-3, \"best\"", "", {{"loss", {1}, {1}}}};
  const Curve formula = {"02", "=1+1", "", {{"loss", {1}, {1}}}};
  EXPECT_EQ(Csv({comma, formula}, {.main_series_only = true}),
            "run,step,loss,gradient_norm,learning_rate\n"
            "\"lr 1e-3, \"\"best\"\"\",1,1,,\n'=1+1,1,1,,\n");
}

TEST(CsvTest, CollidingNamesGetARunIdColumn) {
  const Curve one = {"01A", "same", "", {{"loss", {1}, {1}}}};
  const Curve two = {"01B", "same", "", {{"loss", {1}, {2}}}};
  EXPECT_EQ(Csv({one, two}, {.main_series_only = true}),
            "run,run_id,step,loss,gradient_norm,learning_rate\n"
            "same,01A,1,1,,\nsame,01B,1,2,,\n");
}

TEST(CsvTest, LongCurvesComeInPieces) {
  Curve curve = {"01", "long", "", {{"loss", {}, {}}}};
  for (int64_t step = 1; step <= 20000; ++step) {
    curve.series[0].steps.push_back(step);
    curve.series[0].values.push_back(0.123456789);
  }
  int pieces = 0;
  EXPECT_EQ(WriteCsv({curve}, {}, [&pieces](std::string_view) { ++pieces; }), 20000);
  EXPECT_GT(pieces, 3);
}

TEST(NumberTextTest, IsTheShortestThatReadsBack) {
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 4.212}) {
    EXPECT_EQ(std::strtod(NumberText(value).c_str(), nullptr), value) << NumberText(value);
  }
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(NumberText(1e-5), "1e-05");
}

TEST(NumberTextTest, ShortTextIsForPeople) {
  EXPECT_EQ(ShortNumberText(0.0016531), "0.001653");
  EXPECT_EQ(ShortNumberText(4.2123), "4.212");
  EXPECT_EQ(ShortNumberText(1.23456e-7), "1.23e-7");
  EXPECT_EQ(ShortNumberText(18432.4), "18432");
  EXPECT_EQ(ShortNumberText(0), "0");
  EXPECT_EQ(ShortNumberText(kNan), "NaN");
}

TEST(PointsJsonTest, IsExactlyTheDocumentedEncoding) {
  const std::vector<Series> series = {
      {"loss", {7, 8}, {4.1, kNan}}, {"empty", {}, {}}, {"gradient_norm", {7}, {-kInfinity}}};
  EXPECT_EQ(PointsJson("01J", 2, series),
            "{\"run\":\"01J\",\"attempt\":2,\"columns\":{\"loss\":{\"steps\":[7,8],"
            "\"values\":[4.1,\"NaN\"]},\"gradient_norm\":{\"steps\":[7],"
            "\"values\":[\"-Infinity\"]}}}");
}

TEST(PointsJsonTest, StringsAreEscaped) {
  std::string json;
  AppendJsonString(json, "a\"b\\c\n\x01·");
  EXPECT_EQ(json, "\"a\\\"b\\\\c\\n\\u0001·\"");
}

}  // namespace
}  // namespace normlab::exporter
