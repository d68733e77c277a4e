// normlab sweep against a scripted server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "client/program.h"
#include "client/sweep_flags.h"
#include "tests/unit/client/fake_server.h"

namespace normlab::client {
namespace {

using normlab::v1::Column;
using normlab::v1::CreateExperimentRequest;
using normlab::v1::Sweep;
using normlab::v1::SweepAxis;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

SweepAxis Grid(const std::string& text) {
  const absl::StatusOr<SweepAxis> axis = ParseGridAxis(text);
  EXPECT_TRUE(axis.ok()) << axis.status();
  return axis.ok() ? *axis : SweepAxis();
}

std::string GridFault(const std::string& text) {
  return std::string(ParseGridAxis(text).status().message());
}

TEST(SweepFlagsTest, AGridAxisIsValuesOrARange) {
  EXPECT_THAT(Grid("layers=2,6,12").values(), ElementsAre("2", "6", "12"));
  EXPECT_EQ(Grid("learning-rate=5e-4").setting(), "learning_rate");
  const SweepAxis seeds = Grid("seed=0:4");
  EXPECT_EQ(seeds.range().minimum(), 0);
  EXPECT_EQ(seeds.range().maximum(), 4);
  EXPECT_EQ(seeds.range().count(), 5);
  EXPECT_FALSE(seeds.range().logarithmic());
  const SweepAxis linear = Grid("dropout=0:0.5:6");
  EXPECT_EQ(linear.range().count(), 6);
  EXPECT_EQ(linear.range().maximum(), .5);
  const SweepAxis rates = Grid("learning_rate=5e-4:8e-3:log5");
  EXPECT_TRUE(rates.range().logarithmic());
  EXPECT_EQ(rates.range().minimum(), 5e-4);
  EXPECT_EQ(rates.range().count(), 5);
}

TEST(SweepFlagsTest, AColonInATextIsNoRange) {
  EXPECT_THAT(Grid("data=text:alice,arithmetic").values(), ElementsAre("text:alice", "arithmetic"));
}

TEST(SweepFlagsTest, WhatCannotBeReadSaysWhatCan) {
  EXPECT_THAT(GridFault("layers"), HasSubstr("needs SETTING=VALUE"));
  EXPECT_THAT(GridFault("layer=2"), HasSubstr("did you mean layers?"));
  EXPECT_THAT(GridFault("dropout=0:0.5"), HasSubstr("how many? 0:0.5:5"));
  EXPECT_THAT(GridFault("seed=4:4"), HasSubstr("2 to 10000 integers"));
  EXPECT_THAT(GridFault("seed=0:1e12"), HasSubstr("2 to 10000 integers"));
  for (const char* text : {"seed=a:4", "seed=0:4:5:6", "seed=0:4:ln5", "seed=0:4:log", "seed=:"}) {
    EXPECT_THAT(GridFault(text), HasSubstr("needs FIRST:LAST")) << text;
  }
  EXPECT_THAT(ParseRandomAxis("dropout=0:1:5").status().message(), HasSubstr("FIRST:LAST:log"));
}

TEST(SweepFlagsTest, ARandomAxisNeedsNoCount) {
  const absl::StatusOr<SweepAxis> axis = ParseRandomAxis("learning_rate=1e-4:1e-2:log");
  ASSERT_TRUE(axis.ok());
  EXPECT_TRUE(axis->range().logarithmic());
  EXPECT_EQ(axis->range().count(), 0);
  EXPECT_FALSE(ParseRandomAxis("dropout=0:0.5")->range().logarithmic());
  EXPECT_THAT(ParseRandomAxis("placement=pre,post")->values(), ElementsAre("pre", "post"));
}

class SweepCommandTest : public testing::Test {
 protected:
  SweepCommandTest() {
    ::unsetenv("NORMLAB_SERVER");
    ::unsetenv("NORMLAB_TOKEN");
    ::setenv("NORMLAB_DATA_DIR", server_.data_dir().c_str(), 1);
  }

  int Normlab(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "sweep");
    out_.clear();
    err_.clear();
    Terminal::Traits traits;
    traits.out = [this](std::string_view bytes) { out_ += bytes; };
    traits.err = [this](std::string_view bytes) { err_ += bytes; };
    Terminal terminal(std::move(traits));
    return RunProgram(arguments, terminal);
  }
  const CreateExperimentRequest& Asked() { return server_.experiments.back(); }
  Sweep AskedSweep() { return Asked().experiment().sweep(); }

  // A run that the fake server has, and its end.
  void AddRun(const std::string& id, int64_t layers, const std::string& placement, double loss,
              v1::Run::State state, const std::string& reason = "") {
    v1::Run run;
    run.set_id(id);
    run.set_display_name(id);
    run.mutable_spec()->set_layers(layers);
    run.mutable_spec()->set_placement(placement);
    *run.mutable_effective_spec() = run.spec();
    run.set_state(state);
    run.set_end_reason(reason);
    Column losses;
    losses.set_name("loss");
    losses.add_steps(1);
    losses.add_values(loss);
    server_.series[id] = {losses};
    server_.runs.push_back(run);
    if (server_.watches.empty()) server_.watches.emplace_back();
    *server_.watches[0].events.emplace_back().mutable_end()->mutable_run() = run;
  }
  std::string File(const std::string& name) {
    std::ifstream file(out_dir_ / name);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }

  FakeServer server_;
  const std::filesystem::path out_dir_ = server_.data_dir() / "out";
  std::string out_, err_;
};

TEST_F(SweepCommandTest, AGridIsSentAsOneCall) {
  EXPECT_EQ(
      Normlab({"--grid", "layers=2,6", "--grid", "placement=pre,post", "--seeds", "3", "--steps",
               "40", "--experiment", "depth", "--device", "cpu", "--priority", "low", "--hold"}),
      0)
      << err_;
  ASSERT_EQ(server_.experiments.size(), 1u);
  EXPECT_EQ(Asked().experiment().display_name(), "depth");
  EXPECT_EQ(Asked().device(), "cpu");
  EXPECT_EQ(Asked().priority(), "low");
  EXPECT_TRUE(Asked().held());
  EXPECT_FALSE(Asked().validate_only());
  const Sweep sweep = AskedSweep();
  ASSERT_EQ(sweep.axes_size(), 3);
  EXPECT_EQ(sweep.axes(2).setting(), "seed");
  EXPECT_THAT(sweep.axes(2).values(), ElementsAre("1", "2", "3"));
  EXPECT_EQ(sweep.base().steps(), 40);
  EXPECT_FALSE(sweep.has_early_stop());
  EXPECT_THAT(out_, StartsWith("01JEXPERIMENT  "));
}

TEST_F(SweepCommandTest, WithDrawsEveryCombinationOfTheGridHasEach) {
  EXPECT_EQ(Normlab({"--random", "learning_rate=1e-4:1e-2:log", "--samples", "20", "--sample-seed",
                     "7", "--grid", "placement=pre,post", "--seeds", "2", "--layers", "3"}),
            0)
      << err_;
  const Sweep sweep = AskedSweep();
  EXPECT_EQ(sweep.samples(), 20);
  EXPECT_EQ(sweep.sample_seed(), 7u);
  ASSERT_EQ(sweep.axes_size(), 1);
  EXPECT_EQ(sweep.axes(0).setting(), "learning_rate");
  ASSERT_EQ(sweep.list_size(), 4);
  EXPECT_EQ(sweep.list(3).placement(), "post");
  EXPECT_EQ(sweep.list(3).seed(), 2);
  EXPECT_FALSE(sweep.list(3).has_layers());  // the base's
  EXPECT_EQ(sweep.base().layers(), 3);
}

TEST_F(SweepCommandTest, AListIsAFileWithAnObjectALine) {
  const std::filesystem::path path = server_.data_dir() / "runs.jsonl";
  std::ofstream(path)
      << "{\"placement\": \"pre\"}\n\n{\"placement\": \"post\", \"warmupSteps\": 9}\n";
  EXPECT_EQ(Normlab({"--list", path.string(), "--layers", "3"}), 0) << err_;
  ASSERT_EQ(AskedSweep().list_size(), 2);
  EXPECT_EQ(AskedSweep().list(1).warmup_steps(), 9);
  std::ofstream(path) << "{\"placement\": \"pre\"}\n{\"placment\": \"post\"}\n";
  EXPECT_EQ(Normlab({"--list", path.string()}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("runs.jsonl line 2"), HasSubstr("placment")));
  std::ofstream(path) << "\n";
  EXPECT_EQ(Normlab({"--list", path.string()}), 2);
  EXPECT_EQ(Normlab({"--list", "/nowhere/runs.jsonl"}), 2);
  EXPECT_EQ(server_.experiments.size(), 1u);
}

TEST_F(SweepCommandTest, EarlyStopNeedsBothOfItsFlags) {
  EXPECT_EQ(Normlab({"--seeds", "9", "--stop-above-quantile", "0.5", "--stop-at", "40,80",
                     "--stop-peers", "4"}),
            0)
      << err_;
  EXPECT_THAT(AskedSweep().early_stop().steps(), ElementsAre(40, 80));
  EXPECT_EQ(AskedSweep().early_stop().quantile(), .5);
  EXPECT_EQ(AskedSweep().early_stop().minimum_peers(), 4);
  EXPECT_EQ(Normlab({"--seeds", "9", "--stop-above-quantile", "0.5"}), 2);
  EXPECT_EQ(Normlab({"--seeds", "9", "--stop-at", "40"}), 2);
  EXPECT_EQ(Normlab({"--seeds", "9", "--stop-peers", "4"}), 2);
}

TEST_F(SweepCommandTest, WhatCannotBeASweepIsAUsageError) {
  EXPECT_EQ(Normlab({}), 2);
  EXPECT_THAT(err_, HasSubstr("nothing to vary"));
  EXPECT_EQ(Normlab({"--grid", "layer=2"}), 2);
  EXPECT_EQ(Normlab({"--random", "dropout=0:1"}), 2);
  EXPECT_THAT(err_, HasSubstr("--samples"));
  EXPECT_EQ(Normlab({"--seeds", "2", "--samples", "3"}), 2);
  EXPECT_EQ(Normlab({"--seeds", "2", "--layers", "0"}), 2);
  EXPECT_EQ(Normlab({"--grid", "layers=2,2", "--random", "dropout=0:1", "--samples", "3"}), 2);
  EXPECT_TRUE(server_.experiments.empty());
}

TEST_F(SweepCommandTest, DryRunShowsTheRunsAndAsksForNoMore) {
  AddRun("layers=2", 2, "pre", 1, v1::Run::STATE_QUEUED);
  EXPECT_EQ(Normlab({"--grid", "layers=2,6", "--dry-run", "--watch"}), 0) << err_;
  EXPECT_TRUE(Asked().validate_only());
  EXPECT_TRUE(server_.watched.empty());
  EXPECT_THAT(out_, HasSubstr("layers=2"));
  EXPECT_THAT(out_, HasSubstr("1 runs would be accepted."));
  EXPECT_EQ(Normlab({"--grid", "layers=2,6", "--dry-run", "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_)["runs"][0]["displayName"], "layers=2");
}

TEST_F(SweepCommandTest, ARefusalNamesThePlace) {
  server_.create_status =
      BadRequestStatus({{"experiment.sweep.axes[0].values[1]", "heads: -1 is too small"}});
  EXPECT_EQ(Normlab({"--grid", "heads=1,-1"}), 4);
  EXPECT_THAT(err_, HasSubstr("experiment.sweep.axes[0].values[1]: heads: -1 is too small"));
}

TEST_F(SweepCommandTest, AWatchedSweepEndsInAGridOfMediansAndFiles) {
  AddRun("A", 2, "pre", .125, v1::Run::STATE_SUCCEEDED);
  AddRun("B", 2, "post", .5, v1::Run::STATE_SUCCEEDED);
  AddRun("C", 6, "pre", .25, v1::Run::STATE_SUCCEEDED);
  AddRun("D", 6, "post", 3, v1::Run::STATE_DIVERGED);
  EXPECT_EQ(Normlab({"--grid", "layers=2,6", "--grid", "placement=pre,post", "--watch", "-o",
                     out_dir_.string()}),
            0)
      << err_;
  EXPECT_THAT(out_, HasSubstr("final loss by layers and placement"));
  EXPECT_THAT(out_, HasSubstr("4 runs, 1 diverged"));
  EXPECT_EQ(File("sweep-table.csv"),
            "layers,placement,value,low,high,runs,expected,minimum,maximum,holds\n"
            "2,pre,0.125,0.125,0.125,1,,,,\n"
            "2,post,0.5,0.5,0.5,1,,,,\n"
            "6,pre,0.25,0.25,0.25,1,,,,\n"
            "6,post,Infinity,Infinity,Infinity,1,,,,\n");
  EXPECT_THAT(File("sweep.csv"), StartsWith("run,step,loss,"));
  EXPECT_THAT(File("sweep.svg"), AllOf(StartsWith("<svg"), HasSubstr(">diverged</text>")));
}

TEST_F(SweepCommandTest, RunsThatWereStoppedEarlyAreNoFaultAndOthersAre) {
  AddRun("A", 2, "pre", .125, v1::Run::STATE_SUCCEEDED);
  AddRun("B", 6, "pre", 3, v1::Run::STATE_CANCELLED,
         "stopped early at step 40: loss 3 is above the 0.5 quantile, 1, of 3 peers");
  EXPECT_EQ(Normlab({"--report", "01JEXPERIMENT", "--json", "-o", out_dir_.string()}), 0) << err_;
  const size_t last = out_.rfind('\n', out_.size() - 2);
  const auto json = nlohmann::json::parse(out_.substr(last + 1));
  EXPECT_EQ(json["event"], "report");
  EXPECT_EQ(json["stoppedEarly"], 1);
  EXPECT_EQ(json["cells"][0]["settings"]["layers"], "2");
  EXPECT_TRUE(server_.experiments.empty());  // nothing new was made
}

TEST_F(SweepCommandTest, ARunThatSomebodyCancelledIsAFault) {
  AddRun("A", 2, "pre", .125, v1::Run::STATE_SUCCEEDED);
  AddRun("B", 12, "pre", 3, v1::Run::STATE_CANCELLED, "cancelled by lab1");
  EXPECT_EQ(Normlab({"--report", "01JEXPERIMENT", "-o", out_dir_.string()}), 1) << err_;
  EXPECT_THAT(File("sweep-table.csv"), HasSubstr("12,,NaN,"));
}

}  // namespace
}  // namespace normlab::client
