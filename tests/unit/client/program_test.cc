// Whole command lines against a scripted server.
#include "client/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tests/unit/client/fake_server.h"

namespace normlab::client {
namespace {

using normlab::v1::Column;
using normlab::v1::WatchRunsResponse;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kPreId[] = "01J0000000AAAAAAAAAAAAAAAA";
constexpr char kPostId[] = "01J0000000BBBBBBBBBBBBBBBB";

v1::Run MakeRun(const std::string& id, const std::string& name, v1::Run::State state) {
  v1::Run run;
  run.set_id(id);
  run.set_display_name(name);
  run.set_state(state);
  run.mutable_spec()->set_placement(name);
  run.mutable_effective_spec()->set_placement("pre");
  run.mutable_effective_spec()->set_steps(2);
  run.mutable_progress()->set_steps(2);
  return run;
}

Column MakeColumn(const std::string& name, const std::vector<int64_t>& steps,
                  const std::vector<double>& values) {
  Column column;
  column.set_name(name);
  column.mutable_steps()->Add(steps.begin(), steps.end());
  column.mutable_values()->Add(values.begin(), values.end());
  return column;
}

WatchRunsResponse PointsEvent(const std::string& run, int64_t step, double loss,
                              const std::string& token) {
  WatchRunsResponse event;
  event.set_resume_token(token);
  event.mutable_points()->set_run(run);
  event.mutable_points()->set_attempt(1);
  *event.mutable_points()->add_columns() = MakeColumn("loss", {step}, {loss});
  return event;
}

WatchRunsResponse EndEvent(const v1::Run& run, v1::Run::State state,
                           const std::string& token = "") {
  WatchRunsResponse event;
  event.set_resume_token(token);
  *event.mutable_end()->mutable_run() = run;
  event.mutable_end()->mutable_run()->set_state(state);
  event.mutable_end()->mutable_run()->mutable_progress()->set_step(2);
  return event;
}

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    ::unsetenv("NORMLAB_SERVER");
    ::unsetenv("NORMLAB_TOKEN");
    ::setenv("NORMLAB_DATA_DIR", server_.data_dir().c_str(), 1);
    server_.runs = {MakeRun(kPreId, "pre", v1::Run::STATE_RUNNING),
                    MakeRun(kPostId, "post", v1::Run::STATE_QUEUED)};
    for (const char* id : {kPreId, kPostId}) {
      server_.series[id] = {MakeColumn("loss", {1, 2}, {4.5, 0.125}),
                            MakeColumn("gradient_norm", {1, 2}, {1.5, 0.5}),
                            MakeColumn("learning_rate", {1, 2}, {0.002, 0.002})};
    }
  }

  int Normlab(const std::vector<std::string>& arguments) {
    out_.clear();
    err_.clear();
    Terminal::Traits traits;
    traits.out = [this](std::string_view bytes) { out_ += bytes; };
    traits.err = [this](std::string_view bytes) { err_ += bytes; };
    Terminal terminal(std::move(traits));
    return RunProgram(arguments, terminal);
  }

  FakeServer server_;
  std::string out_, err_;
};

TEST_F(ProgramTest, UnknownOptionAndCommandAreUsageErrorsWithTheNearestName) {
  EXPECT_EQ(Normlab({"submit", "--layer", "6"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean --layers?"));
  EXPECT_EQ(Normlab({"submit", "--set", "lr=6"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean learning_rate?"));
  EXPECT_EQ(Normlab({"wacth"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean watch?"));
  EXPECT_EQ(Normlab({"submit", "--layers", "0"}), 2);
  EXPECT_THAT(err_, HasSubstr("layers: 0 is too small; use 1 to 1024"));
  EXPECT_EQ(Normlab({}), 2);
  EXPECT_TRUE(server_.created.empty());
}

TEST_F(ProgramTest, EveryCommandHasHelpWithExamples) {
  for (const char* command :
       {"article", "preset", "submit", "sweep", "ls",      "show",    "watch",  "probe",
        "log",     "pause",  "resume", "retry", "cancel",  "rename",  "label",  "note",
        "pin",     "rm",     "prune",  "queue", "devices", "export",  "plot",   "open",
        "login",   "logout", "user",   "audit", "backup",  "compact", "doctor", "completion"}) {
    EXPECT_EQ(Normlab({command, "--help"}), 0) << command;
    EXPECT_THAT(out_, HasSubstr("Examples:")) << command;
  }
}

TEST_F(ProgramTest, QueueTellsWhoWaitsForWhatAndWhoHasUsedHowMuch) {
  EXPECT_EQ(Normlab({"queue"}), 0);
  EXPECT_THAT(out_, HasSubstr("waits for run big on cpu:0"));
  EXPECT_THAT(out_, HasSubstr("gpu, 2 GPUs, 4.0 GiB, exclusive"));
  EXPECT_THAT(out_, HasSubstr("and 2 more (-n 3)"));
  EXPECT_THAT(out_, HasSubstr("1 h 30 min"));
  EXPECT_EQ(Normlab({"queue", "--json", "-n", "1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\"position\":\"1\""));
  EXPECT_EQ(Normlab({"queue", "-n", "0"}), 2);
}

TEST_F(ProgramTest, SubmitSendsOnlyWhatWasGiven) {
  EXPECT_EQ(Normlab({"submit", "--learning_rate", "1e-3", "--layers", "6", "--set",
                     "warmup_steps=0", "--name", "a b"}),
            0);
  ASSERT_EQ(server_.created.size(), 1u);
  const v1::Run& run = server_.created[0].run();
  EXPECT_EQ(run.display_name(), "a b");
  EXPECT_EQ(run.spec().learning_rate(), 1e-3);
  EXPECT_EQ(run.spec().layers(), 6);
  EXPECT_TRUE(run.spec().has_warmup_steps());
  EXPECT_FALSE(run.spec().has_steps());
  EXPECT_FALSE(server_.created[0].validate_only());
  EXPECT_THAT(out_, StartsWith("01J00000000000000000000NEW"));
}

TEST_F(ProgramTest, DryRunOnlyValidates) {
  EXPECT_EQ(Normlab({"submit", "--dry-run"}), 0);
  EXPECT_TRUE(server_.created.at(0).validate_only());
  EXPECT_THAT(out_, HasSubstr("all at their defaults"));
}

TEST_F(ProgramTest, DryRunShowsSettingsAndTheSizeOfTheModel) {
  EXPECT_EQ(Normlab({"submit", "--dry-run", "--placement", "post", "--norm", "rmsnorm"}), 0);
  EXPECT_THAT(out_, HasSubstr("placement post, norm rmsnorm\n"));
  EXPECT_THAT(out_, HasSubstr("ffn_width 256"));
  EXPECT_THAT(out_, HasSubstr("610,176"));
  EXPECT_THAT(out_, HasSubstr("2.85 GFLOP a step"));
  EXPECT_THAT(out_, HasSubstr("about 150 MiB"));
  EXPECT_EQ(Normlab({"submit", "--dry-run", "--json"}), 0);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["summary"]["parameterCount"], "610176");
  EXPECT_EQ(json["summary"]["memoryBytes"], 150.0 * (1 << 20));
  EXPECT_FALSE(json.contains("id"));
}

TEST_F(ProgramTest, ARefusalPrintsOneLineForEachField) {
  server_.create_status =
      BadRequestStatus({{"spec.heads", "5 does not divide d_model 64; use 4 or 8"},
                        {"spec.layers", "1000000000 is too large; use 1 to 1024"}});
  EXPECT_EQ(Normlab({"submit", "--heads", "5"}), 4);
  EXPECT_EQ(err_,
            "normlab: spec.heads: 5 does not divide d_model 64; use 4 or 8\n"
            "spec.layers: 1000000000 is too large; use 1 to 1024\n");
}

TEST_F(ProgramTest, WithoutAServerTheStartCommandIsNamed) {
  EXPECT_EQ(Normlab({"ls", "--data-dir", "/nonexistent"}), 3);
  EXPECT_THAT(err_, HasSubstr("start one with: normlabd --data-dir /nonexistent"));
}

TEST_F(ProgramTest, AnOpenSocketFolderOrEndpointFileIsNotTrusted) {
  const std::string folder = (server_.data_dir() / "sock").string();
  ::chmod(folder.c_str(), 0755);
  EXPECT_EQ(Normlab({"ls"}), 4);
  EXPECT_THAT(err_, HasSubstr("chmod 700 " + folder));
  ::chmod(folder.c_str(), 0700);
  const std::string file = (server_.data_dir() / "endpoint.json").string();
  ::chmod(file.c_str(), 0644);
  EXPECT_EQ(Normlab({"ls"}), 4);
  EXPECT_THAT(err_, HasSubstr("chmod 600 " + file));
  EXPECT_THAT(err_, Not(HasSubstr(FakeServer::kToken)));
}

TEST_F(ProgramTest, LsPrintsTabsOutsideATerminalAndJsonLines) {
  EXPECT_EQ(Normlab({"ls"}), 0);
  EXPECT_THAT(out_, HasSubstr("01J0000000A\t● running\tpre\tpre\t"));
  EXPECT_EQ(Normlab({"--json", "ls"}), 0);
  const std::string first = out_.substr(0, out_.find('\n'));
  EXPECT_EQ(nlohmann::json::parse(first)["state"], "STATE_RUNNING");
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 2);
}

TEST_F(ProgramTest, ARunIsFoundByIdPrefixOrName) {
  for (const char* reference : {kPreId, "01j0000000a", "pre"}) {
    EXPECT_EQ(Normlab({"show", reference, "--json"}), 0) << reference;
    EXPECT_EQ(nlohmann::json::parse(out_)["id"], kPreId) << reference;
  }
  EXPECT_EQ(Normlab({"show", "nothing"}), 4);
  EXPECT_THAT(err_, HasSubstr("there is no run \"nothing\""));
}

TEST_F(ProgramTest, AnAmbiguousRunListsTheCandidates) {
  EXPECT_EQ(Normlab({"show", "01J"}), 4);
  EXPECT_THAT(err_, HasSubstr(kPreId));
  EXPECT_THAT(err_, HasSubstr(kPostId));
}

TEST_F(ProgramTest, CancelGoesOnAfterAFailure) {
  EXPECT_EQ(Normlab({"cancel", "nothing", "post"}), 4);
  EXPECT_THAT(server_.cancelled, testing::ElementsAre(kPostId));
}

TEST_F(ProgramTest, PauseAndResumeSayWhatBecameOfTheirRuns) {
  EXPECT_EQ(Normlab({"pause", "post", "pre"}), 0);
  EXPECT_THAT(server_.paused, testing::ElementsAre(kPostId, kPreId));
  EXPECT_THAT(out_, HasSubstr("pausing"));
  EXPECT_EQ(Normlab({"resume", kPreId}), 0);
  EXPECT_THAT(server_.resumed, testing::ElementsAre(kPreId));
  EXPECT_THAT(out_, HasSubstr("queued"));
  EXPECT_TRUE(server_.watched.empty());
  server_.pause_status =
      grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "run X has already ended (succeeded)");
  EXPECT_EQ(Normlab({"pause", "pre"}), 4);
  EXPECT_THAT(err_, HasSubstr("has already ended (succeeded)"));
  EXPECT_EQ(Normlab({"pause"}), 2);
}

TEST_F(ProgramTest, RetryGoesOnOrStartsAfresh) {
  EXPECT_EQ(Normlab({"retry", "pre", "post"}), 0);
  ASSERT_EQ(server_.retried.size(), 2u);
  EXPECT_EQ(server_.retried[0].id(), kPreId);
  EXPECT_FALSE(server_.retried[0].from_start());
  EXPECT_THAT(out_, HasSubstr("queued"));
  EXPECT_EQ(Normlab({"retry", "pre", "--from-start"}), 0);
  EXPECT_TRUE(server_.retried[2].from_start());
  server_.retry_status = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "run X has succeeded");
  EXPECT_EQ(Normlab({"retry", "pre"}), 4);
  EXPECT_THAT(err_, HasSubstr("has succeeded"));
}

TEST_F(ProgramTest, ResumeCanWatchToTheEnd) {
  server_.watches = {{{EndEvent(server_.runs[0], v1::Run::STATE_DIVERGED)}}};
  EXPECT_EQ(Normlab({"resume", "pre", "--watch"}), 5);
  ASSERT_EQ(server_.watched.size(), 1u);
  EXPECT_EQ(server_.watched[0].runs(0), kPreId);
}

// Points of log_z, after which a probe looks for the rest.
WatchRunsResponse MeasuredEvent(const std::string& run, int64_t step) {
  WatchRunsResponse event = PointsEvent(run, step, 1.5, "token");
  *event.mutable_points()->add_columns() = MakeColumn("log_z", {step}, {4.25});
  return event;
}

WatchRunsResponse RunEvent(v1::Run run, v1::Run::State state) {
  WatchRunsResponse event;
  run.set_state(state);
  *event.mutable_run() = std::move(run);
  return event;
}

class ProbeTest : public ProgramTest {
 protected:
  ProbeTest() {
    server_.runs[0].mutable_progress()->set_step(5);
    server_.series[kPreId] = {
        MakeColumn("loss", {6, 7}, {4.5, 1.5}),
        MakeColumn("block/1/gradient_norm", {7}, {9}),
        MakeColumn("log_z", {2, 7}, {1, 4.25}),
        MakeColumn("block/1/attention_entropy", {7}, {2.5}),
        MakeColumn("block/1/jacobian_gain", {2, 7}, {1, 1.0625}),
        MakeColumn("block/2/attention_entropy", {7}, {1.5}),
        MakeColumn("block/2/jacobian_gain", {7}, {std::numeric_limits<double>::quiet_NaN()}),
    };
  }
};

TEST_F(ProbeTest, WaitsForTheNextMeasuredStepAndPrintsARowForEachBlock) {
  server_.watches = {{{RunEvent(server_.runs[0], v1::Run::STATE_RUNNING),
                       PointsEvent(kPreId, 6, 4.5, "token"), MeasuredEvent(kPreId, 7)},
                      grpc::Status::OK,
                      /*hang=*/true}};
  EXPECT_EQ(Normlab({"probe", "pre"}), 0) << err_;
  EXPECT_THAT(server_.probed, testing::ElementsAre(kPreId));
  EXPECT_EQ(server_.watched.at(0).from_step(), 6) << "what it did before is not of interest";
  EXPECT_EQ(out_,
            "pre: step 7\n"
            "block\tentropy\tgain\n"
            "block/1\t2.5\t1.062\n"
            "block/2\t1.5\tNaN\n"
            "log Z 4.25\n");
}

TEST_F(ProbeTest, AsJsonHasTheNamesOfTheSeries) {
  server_.watches = {{{MeasuredEvent(kPreId, 7)}}};
  EXPECT_EQ(Normlab({"probe", "pre", "--json"}), 0);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["run"], kPreId);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["values"].size(), 5u);
  EXPECT_EQ(json["values"]["block/1/jacobian_gain"], 1.0625);
  EXPECT_EQ(json["values"]["block/2/jacobian_gain"], "NaN");
  EXPECT_EQ(json["values"]["log_z"], 4.25);
}

TEST_F(ProbeTest, OfOldNumbersAndOfARunThatRestsNothingIsShown) {
  server_.series[kPreId] = {MakeColumn("log_z", {2, 5}, {1, 2})};
  for (const auto state : {v1::Run::STATE_PAUSED, v1::Run::STATE_SUCCEEDED}) {
    server_.watched.clear();
    server_.watches = {{{MeasuredEvent(kPreId, 5), RunEvent(server_.runs[0], state)}}};
    EXPECT_EQ(Normlab({"probe", "pre"}), 4);
    EXPECT_EQ(out_, "");
    EXPECT_THAT(err_, HasSubstr("had no further step: nothing was measured"));
  }
}

TEST_F(ProbeTest, ARunThatEndedRightAfterItWasMeasuredIsShown) {
  server_.watches = {{{RunEvent(server_.runs[0], v1::Run::STATE_SUCCEEDED)}}};
  EXPECT_EQ(Normlab({"probe", "pre"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("pre: step 7"));
}

TEST_F(ProbeTest, ARefusalDoesNotKeepTheOthersBack) {
  server_.probe_status[kPostId] = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                                               "run X is queued; only a run that trains");
  server_.watches = {{{MeasuredEvent(kPreId, 7)}}};
  EXPECT_EQ(Normlab({"probe", "post", "pre", "nothing"}), 4);
  EXPECT_THAT(err_, HasSubstr("run X is queued"));
  EXPECT_THAT(err_, HasSubstr("there is no run \"nothing\""));
  EXPECT_THAT(out_, HasSubstr("pre: step 7"));
  EXPECT_EQ(server_.watched.size(), 1u);
}

TEST_F(ProbeTest, AStepThatTakesTooLongIsSaid) {
  server_.watches = {{{RunEvent(server_.runs[0], v1::Run::STATE_RUNNING)},
                      grpc::Status::OK,
                      /*hang=*/true}};
  EXPECT_EQ(Normlab({"probe", "pre", "--timeout", "0.2"}), 4);
  EXPECT_THAT(err_, HasSubstr("no numbers of pre after 0.2 s: its step takes longer"));
  EXPECT_THAT(err_, HasSubstr(std::string("normlab export ") + kPreId));
  EXPECT_EQ(Normlab({"probe"}), 2);
  EXPECT_EQ(Normlab({"probe", "pre", "--timeout", "0"}), 2);
}

TEST_F(ProbeTest, CtrlCEndsTheWaiting) {
  server_.watches = {{{RunEvent(server_.runs[0], v1::Run::STATE_RUNNING)},
                      grpc::Status::OK,
                      /*hang=*/true}};
  server_.on_probe = [] { ::raise(SIGINT); };
  EXPECT_EQ(Normlab({"probe", "pre"}), 130);
  EXPECT_THAT(err_, HasSubstr("what is measured will be in the curves"));
}

TEST_F(ProgramTest, AWatchGoesOnOverAPauseAndSaysHowToResume) {
  WatchRunsResponse paused;
  *paused.mutable_run() = server_.runs[0];
  paused.mutable_run()->set_state(v1::Run::STATE_PAUSED);
  WatchRunsResponse next;
  next.mutable_attempt()->set_run(kPreId);
  next.mutable_attempt()->mutable_attempt()->set_number(2);
  next.mutable_attempt()->mutable_attempt()->set_resumed_from_attempt(1);
  next.mutable_attempt()->mutable_attempt()->set_resumed_from_step(1);
  WatchRunsResponse second = PointsEvent(kPreId, 2, 0.5, "token-2");
  second.mutable_points()->set_attempt(2);
  server_.watches = {{{PointsEvent(kPreId, 1, 4.5, "token-1"), paused, next, second,
                       EndEvent(server_.runs[0], v1::Run::STATE_SUCCEEDED)}}};
  EXPECT_EQ(Normlab({"watch", "pre"}), 0);
  EXPECT_THAT(out_, HasSubstr(std::string("pre: paused, go on with: normlab resume ") + kPreId));
  EXPECT_THAT(out_, HasSubstr("pre: step 2/2, loss 0.5"));
  EXPECT_THAT(out_, HasSubstr("pre: succeeded"));
}

TEST_F(ProgramTest, ShowTellsCheckpointsAndTimeOfTrainingOnly) {
  v1::Run& run = server_.runs[0];
  run.set_state(v1::Run::STATE_PAUSED);
  for (const int64_t start : {1'000, 500'000}) {  // with a long pause between
    v1::Attempt& attempt = *run.add_attempts();
    attempt.set_number(run.attempts_size());
    attempt.set_device("cpu:0");
    attempt.mutable_start_time()->set_seconds(start);
    attempt.mutable_end_time()->set_seconds(start + 3600);  // the clock was set meanwhile
    attempt.set_run_seconds(20);
    attempt.set_last_step(run.attempts_size());
    attempt.set_checkpoint_step(run.attempts_size());
    attempt.set_resumed_from_step(run.attempts_size() - 1);
    attempt.set_resumed_from_attempt(run.attempts_size() - 1);
  }
  run.mutable_attempts(0)->set_end_reason("the trainer was ended by signal 9 (SIGKILL)");
  run.set_run_seconds(40);
  EXPECT_EQ(Normlab({"show", "pre"}), 0);
  EXPECT_THAT(out_, HasSubstr("paused"));
  EXPECT_THAT(out_, HasSubstr("40 s"));
  EXPECT_THAT(out_, HasSubstr("20 s; the trainer was ended by signal 9"));
  EXPECT_THAT(out_, HasSubstr("from the checkpoint of step 1, has a checkpoint of step 2"));
  EXPECT_THAT(out_, HasSubstr(std::string("normlab resume ") + kPreId));
}

TEST_F(ProgramTest, WatchGoesOnFromItsTokenAfterTheServerWentAway) {
  const v1::Run& run = server_.runs[0];
  server_.watches = {
      {{PointsEvent(kPreId, 1, 4.5, "token-1")},
       grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down")},
      {{PointsEvent(kPreId, 2, 0.5, "token-2"), EndEvent(run, v1::Run::STATE_SUCCEEDED)}}};
  EXPECT_EQ(Normlab({"watch", "pre", "--json"}), 0);
  ASSERT_EQ(server_.watched.size(), 2u);
  EXPECT_EQ(server_.watched[0].resume_token(), "");
  EXPECT_EQ(server_.watched[1].resume_token(), "token-1");
  std::istringstream lines(out_);
  std::vector<int64_t> steps;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["event"] == "points") steps.push_back(json["columns"]["loss"]["steps"][0]);
  }
  EXPECT_THAT(steps, testing::ElementsAre(1, 2));
}

TEST_F(ProgramTest, WatchSaysHowTheRunsEnded) {
  server_.watches = {{{EndEvent(server_.runs[0], v1::Run::STATE_SUCCEEDED),
                       EndEvent(server_.runs[1], v1::Run::STATE_DIVERGED)}}};
  EXPECT_EQ(Normlab({"watch", "pre", "post"}), 5);
  EXPECT_THAT(out_, HasSubstr("post: diverged"));
  server_.watched.clear();
  server_.watches = {{{EndEvent(server_.runs[0], v1::Run::STATE_FAILED),
                       EndEvent(server_.runs[1], v1::Run::STATE_DIVERGED)}}};
  EXPECT_EQ(Normlab({"watch", "pre", "post"}), 1);
}

TEST_F(ProgramTest, AWatchThatCannotGoOnIsAnError) {
  server_.watches = {{{}, grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "another store")}};
  EXPECT_EQ(Normlab({"watch", "pre"}), 4);
  EXPECT_THAT(err_, HasSubstr("another store"));
}

TEST_F(ProgramTest, CtrlCStopsWatchingAndNamesTheCommandToGoOn) {
  WatchScript script;
  script.events = {PointsEvent(kPreId, 1, 4.5, "t")};
  script.hang = true;
  server_.watches = {script};
  // Raised by the first output of the watch, so that no time is guessed.
  Terminal::Traits traits;
  bool raised = false;
  traits.out = [&raised](std::string_view) {
    if (!std::exchange(raised, true)) ::raise(SIGINT);
  };
  traits.err = [this](std::string_view bytes) { err_ += bytes; };
  Terminal terminal(std::move(traits));
  EXPECT_EQ(RunProgram({"watch", kPreId}, terminal), 130);
  EXPECT_THAT(err_, HasSubstr(std::string("normlab watch ") + kPreId));
  EXPECT_TRUE(server_.cancelled.empty());
}

TEST_F(ProgramTest, ArticleWritesTableCsvAndPicture) {
  for (v1::Run& run : server_.runs) run.mutable_spec()->set_layers(6);
  server_.watches = {{{EndEvent(server_.runs[0], v1::Run::STATE_SUCCEEDED),
                       EndEvent(server_.runs[1], v1::Run::STATE_SUCCEEDED)}}};
  const std::filesystem::path out = server_.data_dir() / "out";
  EXPECT_EQ(Normlab({"article", "--layers", "6", "--steps", "2", "--out", out.string()}), 0);
  ASSERT_EQ(server_.experiments.size(), 1u);
  EXPECT_EQ(server_.experiments[0].experiment().preset(), "article");
  EXPECT_EQ(server_.experiments[0].overrides().layers(), 6);
  EXPECT_EQ(server_.watched.at(0).experiment(), "01JEXPERIMENT");
  std::ifstream csv(out / "article.csv");
  const std::string text((std::istreambuf_iterator<char>(csv)), {});
  EXPECT_EQ(text,
            "run,step,loss,gradient_norm,learning_rate\n"
            "pre,1,4.5,1.5,0.002\npre,2,0.125,0.5,0.002\n"
            "post,1,4.5,1.5,0.002\npost,2,0.125,0.5,0.002\n");
  EXPECT_TRUE(std::filesystem::exists(out / "article.svg"));
  EXPECT_THAT(out_, HasSubstr("0.125"));
  EXPECT_THAT(out_, HasSubstr("these runs have layers 6."));
}

TEST_F(ProgramTest, ArticleWithItsOwnSettingsPrintsTheBands) {
  server_.watches = {{{EndEvent(server_.runs[0], v1::Run::STATE_SUCCEEDED),
                       EndEvent(server_.runs[1], v1::Run::STATE_SUCCEEDED)}}};
  const std::filesystem::path out = server_.data_dir() / "out";
  EXPECT_EQ(Normlab({"article", "--out", out.string()}), 0);
  EXPECT_THAT(out_, HasSubstr("pre: within 1e-3"));
  EXPECT_THAT(out_, HasSubstr("0.00165"));
}

TEST_F(ProgramTest, PresetWithoutANameListsThem) {
  EXPECT_EQ(Normlab({"preset"}), 0);
  EXPECT_THAT(out_, HasSubstr("study\t2\tWhich placement learns?"));
  EXPECT_EQ(Normlab({"preset", "--names"}), 0);
  EXPECT_EQ(out_, "article\nstudy\n");
  EXPECT_EQ(Normlab({"preset", "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_.substr(0, out_.find('\n')))["name"], "article");
  EXPECT_EQ(Normlab({"preset", "nothing"}), 4);
  EXPECT_THAT(err_, HasSubstr("the server has no preset \"nothing\"; there is article, study"));
}

class StudyTest : public ProgramTest {
 protected:
  StudyTest() {
    server_.runs[0].set_state(v1::Run::STATE_SUCCEEDED);
    server_.runs[1].mutable_effective_spec()->set_placement("post");
    server_.watches = {{{EndEvent(server_.runs[0], v1::Run::STATE_SUCCEEDED),
                         EndEvent(server_.runs[1], v1::Run::STATE_DIVERGED)}}};
  }

  std::string File(const std::string& name) {
    std::ifstream file(out_dir_ / name);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }

  const std::filesystem::path out_dir_ = server_.data_dir() / "out";
};

TEST_F(StudyTest, WritesTableCurvesAndPictureAndSaysThatTheBandHolds) {
  EXPECT_EQ(Normlab({"preset", "study", "--out", out_dir_.string()}), 0) << err_;
  EXPECT_EQ(server_.experiments.at(0).experiment().preset(), "study");
  EXPECT_EQ(server_.experiments.at(0).experiment().runs_size(), 0);
  EXPECT_EQ(File("study-table.csv"),
            "placement,column,value,low,high,runs,expected,minimum,maximum,holds\n"
            "pre,,0.125,0.125,0.125,1,0.1,,0.5,true\n"
            "post,,Infinity,Infinity,Infinity,1,,,,\n");
  EXPECT_THAT(File("study.csv"), StartsWith("run,step,loss,"));
  EXPECT_THAT(File("study.svg"), StartsWith("<svg"));
  EXPECT_THAT(out_, HasSubstr("✓ holds"));
  EXPECT_THAT(out_, HasSubstr("diverged"));
  EXPECT_THAT(out_, HasSubstr("1 of 1 expectations hold."));
}

TEST_F(StudyTest, ABrokenBandIsTheExitCodeAndInTheJson) {
  server_.series[kPreId][0].set_values(1, 0.75);
  EXPECT_EQ(Normlab({"preset", "study", "--json", "--out", out_dir_.string()}), 6);
  const size_t last = out_.rfind('\n', out_.size() - 2);
  const auto json = nlohmann::json::parse(out_.substr(last + 1));
  EXPECT_EQ(json["event"], "report");
  EXPECT_EQ(json["broken"], 1);
  EXPECT_EQ(json["cells"][0]["settings"]["placement"], "pre");
  EXPECT_EQ(json["cells"][0]["holds"], false);
  EXPECT_EQ(json["cells"][1]["value"], "Infinity");
}

TEST_F(StudyTest, OtherSettingsAreNotJudged) {
  server_.series[kPreId][0].set_values(1, 0.75);
  for (WatchScript& script : server_.watches) {
    for (auto& event : script.events) {
      event.mutable_end()->mutable_run()->mutable_spec()->set_layers(3);
    }
  }
  EXPECT_EQ(Normlab({"preset", "study", "--layers", "3", "--out", out_dir_.string()}), 0);
  EXPECT_THAT(out_, HasSubstr("these runs have layers 3."));
  EXPECT_THAT(out_, Not(HasSubstr("outside")));
}

TEST_F(StudyTest, OnlyChoosesRunsByTheirSettings) {
  Normlab({"preset", "study", "--only", "placement=post", "--out", out_dir_.string()});
  ASSERT_EQ(server_.experiments.size(), 1u);
  ASSERT_EQ(server_.experiments[0].experiment().runs_size(), 1);
  EXPECT_EQ(server_.experiments[0].experiment().runs(0).display_name(), "post");
  for (const char* wrong : {"placement", "nonsense=1", "layers=3", "placement=nonsense"}) {
    EXPECT_EQ(Normlab({"preset", "study", "--only", wrong}), 2) << wrong;
  }
  EXPECT_EQ(server_.experiments.size(), 1u);
}

TEST_F(StudyTest, CtrlCNamesTheCommandThatGoesOnToTheTable) {
  WatchScript script;
  script.events = {PointsEvent(kPreId, 1, 4.5, "t")};
  script.hang = true;
  server_.watches = {script};
  Terminal::Traits traits;
  bool raised = false;
  traits.out = [&raised](std::string_view) {
    if (!std::exchange(raised, true)) ::raise(SIGINT);
  };
  traits.err = [this](std::string_view bytes) { err_ += bytes; };
  Terminal terminal(std::move(traits));
  EXPECT_EQ(RunProgram({"preset", "study", "--out", out_dir_.string()}, terminal), 130);
  EXPECT_THAT(err_, HasSubstr("normlab preset study --experiment 01JEXPERIMENT --out " +
                              out_dir_.string()));
  EXPECT_TRUE(server_.cancelled.empty());
}

TEST_F(ProgramTest, ExportWritesCsvToStandardOutputOrAFile) {
  EXPECT_EQ(Normlab({"export", "pre"}), 0);
  EXPECT_THAT(out_, StartsWith("run,step,loss,gradient_norm,learning_rate\npre,1,4.5,"));
  const std::filesystem::path path = server_.data_dir() / "run.csv";
  EXPECT_EQ(Normlab({"export", "pre", "-o", path.string()}), 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(Normlab({"export", "pre", "-o", "/nonexistent/run.csv"}), 4);
  EXPECT_THAT(err_, HasSubstr("/nonexistent/run.csv"));
}

TEST_F(ProgramTest, ExportWritesTheCheckpointWholeOrNotAtAll) {
  const std::filesystem::path path = server_.data_dir() / "weights.safetensors";
  const auto safetensors = [&] {
    return Normlab({"export", "pre", "--format", "safetensors", "-o", path.string()});
  };
  EXPECT_EQ(safetensors(), 4);
  EXPECT_THAT(err_, HasSubstr("has no checkpoint yet"));
  EXPECT_FALSE(std::filesystem::exists(path));
  server_.checkpoint = {std::string("one\0", 4), "two"};
  server_.checkpoint_bytes = 8;
  EXPECT_NE(safetensors(), 0);
  EXPECT_THAT(err_, HasSubstr("7 of 8 bytes"));
  EXPECT_FALSE(std::filesystem::exists(path));
  server_.checkpoint_bytes = 7;
  EXPECT_EQ(safetensors(), 0);
  EXPECT_THAT(out_, HasSubstr("checkpoint of step 1,200"));
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(bytes, std::string("one\0two", 7));
  EXPECT_EQ(Normlab({"export", "pre", "--format", "safetensors"}), 2) << "not to a terminal";
  EXPECT_EQ(Normlab({"export", "pre", "post", "--format", "safetensors", "-o", "x"}), 2);
}

TEST_F(ProgramTest, PlotWritesAPicture) {
  const std::filesystem::path path = server_.data_dir() / "run.svg";
  EXPECT_EQ(Normlab({"plot", "pre", "post", "-o", path.string()}), 0);
  std::ifstream file(path);
  std::string first;
  std::getline(file, first);
  EXPECT_THAT(first, StartsWith("<svg"));
}

TEST_F(ProgramTest, OpenHandsTheBrowserAPrivateFileAndNoSecret) {
  ::setenv("XDG_RUNTIME_DIR", server_.data_dir().c_str(), 1);
  const std::filesystem::path browser = server_.data_dir() / "browser.sh";
  std::ofstream(browser) << "#!/bin/sh\nprintf '%s' \"$*\" > " << server_.data_dir().string()
                         << "/argv\n";
  ::chmod(browser.c_str(), 0755);
  ::setenv("BROWSER", browser.c_str(), 1);
  EXPECT_EQ(Normlab({"open"}), 0) << err_;
  const std::filesystem::path page = server_.data_dir() / "normlab" / "open.html";
  struct stat info {};
  ASSERT_EQ(::stat(page.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(page.parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  std::ifstream argv(server_.data_dir() / "argv");
  std::string seen;
  std::getline(argv, seen);
  EXPECT_EQ(seen, page.string());
  EXPECT_EQ(Normlab({"open", "--print"}), 0);
  EXPECT_EQ(out_, "http://127.0.0.1:8710/#login=abc\n");
  ::unsetenv("BROWSER");
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(ProgramTest, DoctorSaysWhatIsGoodAndWhatIsNot) {
  EXPECT_EQ(Normlab({"doctor"}), 0) << out_;
  EXPECT_THAT(out_, HasSubstr("accepted: owner (admin)"));
  EXPECT_THAT(out_, HasSubstr("healthy"));
  EXPECT_EQ(Normlab({"doctor", "--data-dir", "/nonexistent", "--json"}), 3);
  EXPECT_TRUE(nlohmann::json::accept(out_));
}

TEST_F(ProgramTest, CompletionKnowsCommandsSettingsAndChoices) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(Normlab({"completion", shell}), 0);
    EXPECT_THAT(out_, HasSubstr("learning-rate")) << shell;
    EXPECT_THAT(out_, HasSubstr("pre post")) << shell;
    EXPECT_THAT(out_, HasSubstr("article")) << shell;
    EXPECT_THAT(out_, HasSubstr("normlab preset --names")) << shell;
    EXPECT_THAT(out_, HasSubstr(" learning_rate= ")) << shell;
  }
}

TEST_F(ProgramTest, HelpSettingsShowsEverySetting) {
  EXPECT_EQ(Normlab({"submit", "--help-settings"}), 0);
  EXPECT_THAT(out_, HasSubstr("--learning-rate"));
  EXPECT_THAT(out_, HasSubstr("default 12 blocks; 1 to 1024"));
  EXPECT_EQ(Normlab({"submit", "--help-settings", "--json"}), 0);
  EXPECT_TRUE(nlohmann::json::accept(out_));
}

}  // namespace
}  // namespace normlab::client
