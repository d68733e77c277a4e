#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/overall_progress.h"
#include "client/plain_reporter.h"
#include "client/term/chart.h"
#include "client/term/live_view.h"
#include "client/term/table.h"
#include "client/term/terminal.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Column;
using normlab::v1::WatchRunsResponse;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Style kPlain(ColourDepth::kNone);

WatchRunsResponse Points(int32_t attempt, const std::vector<int64_t>& steps, double value) {
  WatchRunsResponse event;
  event.mutable_points()->set_run("A");
  event.mutable_points()->set_attempt(attempt);
  for (const char* name : {"loss", "gradient_norm"}) {
    Column* column = event.mutable_points()->add_columns();
    column->set_name(name);
    for (const int64_t step : steps) {
      column->add_steps(step);
      column->add_values(value);
    }
  }
  return event;
}

v1::Run RunningRun() {
  v1::Run run;
  run.set_id("A");
  run.set_display_name("Post-Norm · no warmup");
  run.set_state(v1::Run::STATE_RUNNING);
  run.mutable_progress()->set_steps(180);
  return run;
}

TEST(TextTest, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("Pre-Norm · no"), 13);
  EXPECT_EQ(DisplayWidth("⚡"), 2);
  EXPECT_EQ(DisplayWidth("層"), 2);
  EXPECT_EQ(DisplayWidth("\x1b[38;2;1;2;3mred\x1b[39m"), 3);
}

TEST(TextTest, FitIsExact) {
  EXPECT_EQ(Fit("abcdef", 4), "abc…");
  EXPECT_EQ(Fit("ab", 4, Align::kRight), "  ab");
  EXPECT_EQ(Fit("層層層", 4), "層… ");
  EXPECT_EQ(Fit("abc", 0), "");
}

TEST(TextTest, CleanTakesAwayWhatSteersATerminal) {
  EXPECT_EQ(Clean("a\x1b[2Jb"), "a?[2Jb");
  EXPECT_EQ(Clean("\xff"), "\xEF\xBF\xBD");
  // Overlong, half a surrogate pair, above U+10FFFF: a terminal may see in them what it likes.
  for (const char* broken : {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE0\x80\xAF"}) {
    EXPECT_EQ(Clean(broken).substr(0, 3), "\xEF\xBF\xBD") << broken;
  }
  EXPECT_EQ(Clean("a\nb"), "a b");
  EXPECT_EQ(Clean("x\u202ey"), "x?y");
}

TEST(TextTest, WrapBreaksAtSpacesOnly) {
  EXPECT_THAT(Wrap("one two three four", 9), ElementsAre("one two", "  three", "  four"));
  EXPECT_THAT(Wrap("one two", 0), ElementsAre("one two"));
  EXPECT_THAT(Wrap("averylongword", 5), ElementsAre("averylongword"));
}

TEST(TextTest, DurationsAreInWords) {
  EXPECT_EQ(DurationText(0.4), "0.4 s");
  EXPECT_EQ(DurationText(252), "4 min 12 s");
  EXPECT_EQ(DurationText(3600 * 3 + 300), "3 h 5 min");
}

TEST(TableTest, OptionalColumnsGoBeforeIdsAreCut) {
  Table table({{"id"},
               {"name", Align::kLeft, true},
               {"rate", Align::kRight, false, true},
               {"loss", Align::kRight},
               {"user", Align::kLeft, false, true}});
  table.Add({{"01J9ZKABCD"}, {"a name of twenty-two c"}, {"0.002"}, {"0.125"}, {"somebody"}});
  const auto lines = [&](int width) { return table.Aligned(kPlain, width)[1]; };
  EXPECT_EQ(lines(0), "01J9ZKABCD  a name of twenty-two c  0.002  0.125  somebody");
  EXPECT_EQ(lines(52), "01J9ZKABCD  a name of twent…  0.002  0.125  somebody");
  EXPECT_EQ(lines(44), "01J9ZKABCD  a name of twent…  0.002  0.125");
  EXPECT_EQ(lines(36), "01J9ZKABCD  a name of twent…  0.125");
  EXPECT_EQ(lines(26), "01J9ZKABCD  a name…  0.125");
}

TEST(TableTest, ShrinksTheNamedColumnToFit) {
  Table table({{"id"}, {"name", Align::kLeft, true}, {"loss", Align::kRight}});
  table.Add({{"01J"}, {"a very long name indeed"}, {"0.5"}});
  for (const std::string& line : table.Aligned(kPlain, 24)) EXPECT_LE(DisplayWidth(line), 24);
  EXPECT_THAT(table.TabSeparated(),
              ElementsAre("id\tname\tloss", "01J\ta very long name indeed\t0.5"));
}

TEST(WatchModelTest, PointsSeenTwiceAreDropped) {
  WatchModel model({RunningRun()});
  model.Apply(Points(1, {1, 2, 3}, 4));
  model.Apply(Points(1, {2, 3, 4}, 4));
  EXPECT_THAT(model.runs()[0].loss.steps, ElementsAre(1, 2, 3, 4));
}

TEST(WatchModelTest, ANewAttemptCutsTheCurveAtItsCheckpoint) {
  WatchModel model({RunningRun()});
  model.Apply(Points(1, {1, 2, 3, 4}, 4));
  WatchRunsResponse started;
  started.mutable_attempt()->set_run("A");
  started.mutable_attempt()->mutable_attempt()->set_number(2);
  started.mutable_attempt()->mutable_attempt()->set_resumed_from_attempt(1);
  started.mutable_attempt()->mutable_attempt()->set_resumed_from_step(2);
  model.Apply(started);
  EXPECT_THAT(model.runs()[0].loss.steps, ElementsAre(1, 2));
  model.Apply(Points(2, {3}, 5));
  EXPECT_THAT(model.runs()[0].loss.values, ElementsAre(4, 4, 5));
}

TEST(WatchModelTest, AHistoryAfterItsSnapshotFollowsLineage) {
  v1::Run run = RunningRun();
  for (const int64_t resumed : {0, 2}) {
    auto* attempt = run.add_attempts();
    attempt->set_number(run.attempts_size());
    attempt->set_resumed_from_step(resumed);
    attempt->set_resumed_from_attempt(resumed > 0 ? 1 : 0);
  }
  WatchModel model({run});
  model.Apply(Points(1, {1, 2, 3, 4}, 4));
  model.Apply(Points(2, {3, 4}, 5));
  EXPECT_THAT(model.runs()[0].loss.values, ElementsAre(4, 4, 5, 5));
}

TEST(WatchModelTest, AnAttemptThatWasAbandonedWholeLeavesTheCurveOfThoseBeforeIt) {
  v1::Run run = RunningRun();
  for (const auto& [origin, step] : {std::pair{0, 0}, {1, 3}, {1, 2}}) {
    auto* attempt = run.add_attempts();
    attempt->set_number(run.attempts_size());
    attempt->set_resumed_from_attempt(origin);
    attempt->set_resumed_from_step(step);
  }
  WatchModel model({run});
  model.Apply(Points(1, {1, 2, 3}, 4));
  model.Apply(Points(2, {4, 5}, 5));
  model.Apply(Points(3, {3}, 6));
  EXPECT_THAT(model.runs()[0].loss.steps, ElementsAre(1, 2, 3));
  EXPECT_THAT(model.runs()[0].loss.values, ElementsAre(4, 4, 6));
}

TEST(WatchModelTest, AnAttemptThatStartsAfreshEmptiesTheCurve) {
  WatchModel model({RunningRun()});
  model.Apply(Points(1, {1, 2, 3}, 4));
  WatchRunsResponse started;
  started.mutable_attempt()->set_run("A");
  started.mutable_attempt()->mutable_attempt()->set_number(2);
  model.Apply(started);
  EXPECT_TRUE(model.runs()[0].loss.steps.empty());
  model.Apply(Points(2, {1}, 7));
  EXPECT_THAT(model.runs()[0].loss.values, ElementsAre(7));
}

TEST(ChartTest, DrawsNothingWithoutRoom) {
  EXPECT_TRUE(DrawChart({"loss", {}, 10}, 12, 10, kPlain).empty());
  EXPECT_TRUE(DrawChart({"loss", {}, 10}, 80, 3, kPlain).empty());
}

TEST(ChartTest, AFallingCurveFallsAndABadStepIsMarked) {
  exporter::Series series{"loss", {}, {}};
  for (int64_t step = 1; step <= 100; ++step) {
    series.steps.push_back(step);
    series.values.push_back(step == 100 ? std::nan("") : std::pow(10.0, -0.03 * step));
  }
  const auto lines = DrawChart({"loss", {{&series, "#2563eb"}}, 100}, 60, 12, kPlain);
  ASSERT_EQ(lines.size(), 12u);
  for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), 60);
  EXPECT_THAT(lines[10], HasSubstr("×"));
  // The first dots are at the top left, the last at the bottom right.
  const auto braille_at = [](const std::string& line) { return line.find("\xe2\xa0"); };
  EXPECT_LT(lines[1].find("\xe2\xa1") == std::string::npos ? braille_at(lines[1]) : 12,
            lines[9].rfind("\xe2\xa0"));
}

TEST(LiveViewTest, FitsEverySize) {
  v1::Run coloured = RunningRun();
  coloured.set_colour("#dc5a3a");
  WatchModel model({coloured});
  model.Apply(Points(1, {1, 2, 3, 90}, 4.2));
  for (int columns = 20; columns <= 160; columns += 7) {
    for (int rows = 4; rows <= 50; rows += 5) {
      const auto lines =
          LiveFrame(model, {"article", "", "1 of 3 runs ended, 2 running, about 5 s left", 12},
                    {columns, rows}, kPlain);
      EXPECT_LT(static_cast<int>(lines.size()), std::max(rows, 5)) << columns << "x" << rows;
      for (const std::string& line : lines) {
        EXPECT_LE(DisplayWidth(line), columns) << columns << "x" << rows << ": " << line;
      }
    }
  }
}

TEST(LiveViewTest, ShowsStateProgressValuesAndTimeLeft) {
  v1::Run run = RunningRun();
  run.mutable_progress()->set_remaining_seconds(4);
  WatchModel model({run});
  model.Apply(Points(1, {142}, 0.0046));
  std::string all;
  for (const auto& line : LiveFrame(model, {"article", "", "", 1}, {120, 30}, kPlain)) all += line;
  for (const char* part : {"● running", "Post-Norm · no warmup", "142/180", "0.0046", "4 s left"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

TEST(PlainReporterTest, OneLineAStateAndOneATenth) {
  WatchModel model({RunningRun()});
  PlainReporter reporter;
  EXPECT_THAT(reporter.Report(model), ElementsAre("Post-Norm · no warmup: running"));
  model.Apply(Points(1, {1}, 4));
  EXPECT_TRUE(reporter.Report(model).empty());
  model.Apply(Points(1, {18}, 4));
  EXPECT_THAT(reporter.Report(model),
              ElementsAre("Post-Norm · no warmup: step 18/180, loss 4, gradient norm 4"));
  EXPECT_TRUE(reporter.Report(model).empty());
}

// Twelve runs of 100 steps; starting one is worth as much as 10 steps.
WatchModel ManyRuns() {
  std::vector<v1::Run> runs;
  for (char id = 'a'; id <= 'l'; ++id) {
    v1::Run run = RunningRun();
    run.set_id(std::string(1, id));
    run.set_state(v1::Run::STATE_QUEUED);
    run.mutable_progress()->set_steps(100);
    run.mutable_summary()->set_flops_per_step(1e9);
    runs.push_back(run);
  }
  return WatchModel(runs);
}

void EndRun(WatchModel& model, size_t index, v1::Run::State state) {
  v1::WatchRunsResponse event;
  *event.mutable_end()->mutable_run() = model.runs()[index].run;
  event.mutable_end()->mutable_run()->set_state(state);
  model.Apply(event);
}

TEST(OverallProgressTest, CountsRunsAndWork) {
  WatchModel model = ManyRuns();
  EXPECT_EQ(ProgressOf(model).fraction, 0);
  for (size_t i = 0; i < 3; ++i) EndRun(model, i, v1::Run::STATE_SUCCEEDED);
  const OverallProgress quarter = ProgressOf(model);
  EXPECT_EQ(quarter.ended, 3u);
  EXPECT_DOUBLE_EQ(quarter.fraction, .25);
  EXPECT_DOUBLE_EQ(RemainingSeconds(quarter, 0, 10), 30);
  // A watch that began at a fifth has seen a twentieth in the same time.
  EXPECT_NEAR(RemainingSeconds(quarter, .2, 10), 150, 1e-9);
  EXPECT_LT(RemainingSeconds(quarter, .25, 10), 0);
  EXPECT_EQ(ProgressText(quarter, 30), "3 of 12 runs ended, about 30 s left");
}

TEST(PlainReporterTest, ManyRunsAreCountedAndOnlyFaultsAreNamed) {
  WatchModel model = ManyRuns();
  PlainReporter reporter;
  EXPECT_THAT(reporter.Report(model, 0), ElementsAre("0 of 12 runs ended"));
  EndRun(model, 0, v1::Run::STATE_SUCCEEDED);
  EXPECT_TRUE(reporter.Report(model, 1).empty());
  EndRun(model, 1, v1::Run::STATE_FAILED);
  EXPECT_THAT(reporter.Report(model, 2),
              ElementsAre(HasSubstr("failed"), "2 of 12 runs ended, about 10 s left"));
  for (size_t i = 2; i < 12; ++i) EndRun(model, i, v1::Run::STATE_SUCCEEDED);
  EXPECT_THAT(reporter.Report(model, 12), ElementsAre("12 of 12 runs ended"));
}

TEST(TerminalTest, AFrameIsRedrawnInPlaceAndLinesGoAboveIt) {
  std::string out;
  Terminal::Traits traits;
  traits.smart = true;
  traits.out = [&out](std::string_view bytes) { out += bytes; };
  Terminal terminal(std::move(traits));
  terminal.ShowFrame({"one", "two"});
  out.clear();
  terminal.ShowFrame({"ONE", "TWO"});
  EXPECT_THAT(out, testing::StartsWith("\r\x1b[2A"));
  out.clear();
  terminal.Print("news");
  EXPECT_EQ(out, "\r\x1b[2A\x1b[Jnews\nONE\nTWO\n");
}

TEST(StyleTest, PaintsByTheTerminalsDepth) {
  EXPECT_EQ(Style(ColourDepth::kNone).Paint("x", "#2563eb"), "x");
  EXPECT_EQ(Style(ColourDepth::kTrue).Paint("x", "#2563eb"), "\x1b[38;2;37;99;235mx\x1b[39m");
  EXPECT_THAT(Style(ColourDepth::k256).Paint("x", "#2563eb"), HasSubstr("38;5;"));
}

}  // namespace
}  // namespace normlab::client
