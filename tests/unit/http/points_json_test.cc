#include "server/http/points_json.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/http/event_text.h"
#include "tests/non_finite.h"

namespace normlab::http {
namespace {

void Fill(v1::Column& column, const std::string& name,
          const std::vector<std::pair<int64_t, double>>& points) {
  column.set_name(name);
  for (const auto& [step, value] : points) {
    column.add_steps(step);
    column.add_values(value);
  }
}

v1::Points OneColumn(const std::string& name,
                     const std::vector<std::pair<int64_t, double>>& points) {
  v1::Points message;
  message.set_run("R");
  message.set_attempt(1);
  Fill(*message.add_columns(), name, points);
  return message;
}

TEST(PointsJson, EachSeriesHasItsOwnSteps) {
  v1::Points points;
  points.set_run("01J8ZQ");
  points.set_attempt(2);
  Fill(*points.add_columns(), "loss", {{7, 4.1}, {8, kNan}});
  Fill(*points.add_columns(), "block/3/gradient_norm", {{10, 0.5}});
  EXPECT_EQ(PointsJson(points), R"({"run":"01J8ZQ","attempt":2,"columns":{)"
                                R"("loss":{"steps":[7,8],"values":[4.1,"NaN"]},)"
                                R"("block/3/gradient_norm":{"steps":[10],"values":[0.5]}}})");
}

TEST(PointsJson, NothingIsStillWellFormed) {
  EXPECT_EQ(PointsJson(v1::Points()), R"({"run":"","attempt":0,"columns":{}})");
  EXPECT_EQ(PointsJson(OneColumn("loss", {})),
            R"({"run":"R","attempt":1,"columns":{"loss":{"steps":[],"values":[]}}})");
}

TEST(PointsJson, NumbersAreTheShortestThatReadBack) {
  EXPECT_EQ(PointsJson(OneColumn("x", {{0, 0.1},
                                       {1, 1.0},
                                       {2, -0.0},
                                       {3, 1.0 / 3},
                                       {4, 5e-324},
                                       {5, 1.7976931348623157e308},
                                       {6, 0.001650000000000001},
                                       {9007199254740992, 1e21}})),
            R"({"run":"R","attempt":1,"columns":{"x":{"steps":[0,1,2,3,4,5,6,9007199254740992],)"
            R"("values":[0.1,1,-0,0.3333333333333333,5e-324,1.7976931348623157e+308,)"
            R"(0.001650000000000001,1e+21]}}})");
}

TEST(PointsJson, NonFiniteValuesAreStrings) {
  EXPECT_EQ(PointsJson(OneColumn("x", {{1, kNan}, {2, -kNan}, {3, kInfinity}, {4, -kInfinity}})),
            R"({"run":"R","attempt":1,"columns":{"x":{"steps":[1,2,3,4],)"
            R"("values":["NaN","NaN","Infinity","-Infinity"]}}})");
}

TEST(PointsJson, NamesAreEscaped) {
  EXPECT_EQ(PointsJson(OneColumn("a\"b\\c\n\x01é", {{1, 2}})),
            "{\"run\":\"R\",\"attempt\":1,\"columns\":{\"a\\\"b\\\\c\\n\\u0001é\":"
            "{\"steps\":[1],\"values\":[2]}}}");
  EXPECT_EQ(QuotedJson("\xff"), "\"\xef\xbf\xbd\"");
}

TEST(SeriesJson, SaysHowMuchWasLeftOut) {
  v1::ReadSeriesResponse series;
  series.set_run("R");
  v1::SeriesColumn& loss = *series.add_columns();
  Fill(*loss.mutable_column(), "loss", {{7, 4.1}, {8, kNan}});
  loss.set_total_points(1000000);
  loss.set_non_finite_points(1);
  loss.set_first_non_finite_step(8);
  v1::SeriesColumn& rate = *series.add_columns();
  Fill(*rate.mutable_column(), "learning_rate", {{7, 0.002}});
  rate.set_total_points(1);
  EXPECT_EQ(SeriesJson(series),
            R"({"run":"R","columns":{)"
            R"("loss":{"steps":[7,8],"values":[4.1,"NaN"],"totalPoints":1000000,)"
            R"("nonFinitePoints":1,"firstNonFiniteStep":8},)"
            R"("learning_rate":{"steps":[7],"values":[0.002],"totalPoints":1,)"
            R"("nonFinitePoints":0}}})");
}

TEST(EventText, IsOneEventAndOneDataLine) {
  v1::WatchRunsResponse event;
  *event.mutable_points() = OneColumn("loss", {{1, 2.5}});
  EXPECT_EQ(EventText(event),
            "event: points\ndata: "
            R"({"run":"R","attempt":1,"columns":{"loss":{"steps":[1],"values":[2.5]}}})"
            "\n");
  event.mutable_gap()->set_run("R");
  event.mutable_gap()->set_next_step(12);
  EXPECT_EQ(EventText(event), "event: gap\ndata: {\"run\":\"R\",\"nextStep\":\"12\"}\n");
  event.mutable_heartbeat();
  EXPECT_EQ(EventText(event), "event: heartbeat\ndata: {}\n");
}

TEST(EventText, NamesEveryKindOfEvent) {
  v1::WatchRunsResponse event;
  event.mutable_run()->set_display_name("two\nlines");
  EXPECT_EQ(EventText(event).rfind("event: run\ndata: {", 0), 0u);
  EXPECT_NE(EventText(event).find(R"("displayName":"two\nlines")"), std::string::npos);
  event.mutable_attempt()->set_run("R");
  EXPECT_EQ(EventText(event).rfind("event: attempt\ndata: {\"run\":\"R\"", 0), 0u);
  event.mutable_progress()->mutable_progress()->set_step(5);
  EXPECT_NE(EventText(event).find(R"("step":"5")"), std::string::npos);
  event.mutable_end()->mutable_run()->set_state(v1::Run::STATE_DIVERGED);
  EXPECT_EQ(EventText(event).rfind("event: end\ndata: {\"run\":{", 0), 0u);
}

}  // namespace
}  // namespace normlab::http
