#include "client/watch_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "client/interrupt.h"
#include "client/overall_progress.h"
#include "client/plain_reporter.h"
#include "client/problems.h"
#include "client/term/live_view.h"
#include "client/term/text.h"
#include "client/watch_stream.h"
#include "server/export/points_json.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;
using normlab::v1::WatchRunsResponse;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kRedraw{100};  // at most ten pictures a second
constexpr milliseconds kPatienceBeforeNotice{1000};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Something that shows a watch.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void OnEvent(const WatchRunsResponse& event, const WatchModel& model) = 0;
  // Called between events, at least ten times a second. `notice` is about the connection.
  virtual void OnTick(const WatchModel& model, const std::string& notice) = 0;
  virtual void OnFinish(const WatchModel& model) = 0;
  // What is wrong with the server has changed.
  virtual void OnProblems(const std::vector<std::string>& problems) = 0;
};

class LiveObserver : public Observer {
 public:
  LiveObserver(Terminal& terminal, std::string title)
      : terminal_(terminal), title_(std::move(title)) {}

  void OnEvent(const WatchRunsResponse&, const WatchModel&) override {}

  void OnTick(const WatchModel& model, const std::string& notice) override {
    if (Clock::now() - drawn_ >= kRedraw) Draw(model, notice);
  }

  void OnProblems(const std::vector<std::string>& problems) override {
    problem_ = problems.empty() ? "" : Clean(problems.front());
  }

  void OnFinish(const WatchModel& model) override {
    problem_.clear();
    Draw(model, "");
    terminal_.EndFrame();
    // The picture has little room for reasons.
    for (const WatchedRun& run : model.runs()) {
      const std::string reason = IsTerminal(run.run.state()) ? RunRemark(run.run) : "";
      if (reason.empty()) continue;
      terminal_.Print(fmt::format("{}: {}, {}", Clean(run.run.display_name()),
                                  StateText(run.run.state(), terminal_.style()), Clean(reason)));
    }
  }

 private:
  void Draw(const WatchModel& model, const std::string& notice) {
    drawn_ = Clock::now();
    const LiveFrameInput input = {title_, notice.empty() ? problem_ : notice, ProgressOfAll(model),
                                  SecondsSince(start_)};
    terminal_.ShowFrame(LiveFrame(model, input, terminal_.size(), terminal_.style()));
  }

  // Nothing for a single run, whose line says it all.
  std::string ProgressOfAll(const WatchModel& model) {
    const OverallProgress progress = ProgressOf(model);
    if (progress.runs < 2) return "";
    if (start_fraction_ < 0) start_fraction_ = progress.fraction;
    const double remaining = progress.ended < progress.runs
                                 ? RemainingSeconds(progress, start_fraction_, SecondsSince(start_))
                                 : -1;
    return ProgressText(progress, remaining);
  }

  Terminal& terminal_;
  const std::string title_;
  std::string problem_;  // of the server, the first one
  const Clock::time_point start_ = Clock::now();
  double start_fraction_ = -1;  // when the watch began; -1: not known yet
  Clock::time_point drawn_{};
};

class PlainObserver : public Observer {
 public:
  explicit PlainObserver(Terminal& terminal) : terminal_(terminal) {}

  void OnEvent(const WatchRunsResponse&, const WatchModel& model) override {
    for (const std::string& line : reporter_.Report(model, SecondsSince(start_)))
      terminal_.Print(line);
  }

  void OnTick(const WatchModel&, const std::string& notice) override {
    // The notice counts seconds; its coming and going is what a log wants.
    if (notice.empty() != last_notice_.empty()) {
      terminal_.Print(notice.empty() ? "the server answers again" : notice);
    }
    last_notice_ = notice;
  }

  void OnProblems(const std::vector<std::string>& problems) override {
    PrintProblems(terminal_, problems);
    if (problems.empty()) terminal_.PrintError("normlab: the server has no more problems");
  }

  void OnFinish(const WatchModel& model) override {
    for (const std::string& line : reporter_.Report(model, SecondsSince(start_)))
      terminal_.Print(line);
  }

 private:
  Terminal& terminal_;
  const Clock::time_point start_ = Clock::now();
  PlainReporter reporter_;
  std::string last_notice_;
};

class JsonObserver : public Observer {
 public:
  explicit JsonObserver(Terminal& terminal) : terminal_(terminal) {}

  void OnEvent(const WatchRunsResponse& event, const WatchModel&) override {
    if (const std::string line = EventJson(event); !line.empty()) terminal_.Print(line);
  }
  void OnTick(const WatchModel&, const std::string&) override {}
  void OnProblems(const std::vector<std::string>&) override {}  // the event says it
  void OnFinish(const WatchModel&) override {}

 private:
  Terminal& terminal_;
};

std::unique_ptr<Observer> MakeObserver(Context& context, const std::string& title) {
  if (context.json) return std::make_unique<JsonObserver>(context.terminal);
  if (context.terminal.smart()) return std::make_unique<LiveObserver>(context.terminal, title);
  return std::make_unique<PlainObserver>(context.terminal);
}

std::string NoticeOf(const WatchStream& stream) {
  const auto lost_since = stream.lost_since();
  if (!lost_since || Clock::now() - *lost_since < kPatienceBeforeNotice) return "";
  return fmt::format("no connection to the server for {}, trying again",
                     DurationText(SecondsSince(*lost_since)));
}

void SayInterrupted(Context& context, const WatchTask& task) {
  if (context.json) return;
  context.terminal.PrintError(
      fmt::format("\nStopped watching; the runs go on. To watch again: {}", task.again));
}

std::string Named(std::string_view event, std::string_view token, std::string_view rest) {
  std::string json = fmt::format("{{\"event\":\"{}\"", event);
  if (!token.empty()) {
    json += ",\"resumeToken\":";
    exporter::AppendJsonString(json, token);
  }
  // `rest` is an object: its members follow.
  json += rest.size() > 2 ? "," : "";
  return json + std::string(rest.substr(1));
}

std::string PointsEvent(const normlab::v1::Points& points) {
  std::vector<exporter::Series> series;
  for (const normlab::v1::Column& column : points.columns()) {
    series.push_back({column.name(),
                      {column.steps().begin(), column.steps().end()},
                      {column.values().begin(), column.values().end()}});
  }
  return exporter::PointsJson(points.run(), points.attempt(), series);
}

}  // namespace

int ExitCodeOfState(Run::State state) {
  switch (state) {
    case Run::STATE_FAILED:
    case Run::STATE_CANCELLED:
    case Run::STATE_TIMED_OUT:
      return kExitRunFailed;
    case Run::STATE_DIVERGED:
      return kExitDiverged;
    default:
      return kExitOk;
  }
}

int WatchOutcome::exit_code() const {
  if (interrupted) return kExitInterrupted;
  int code = kExitOk;
  for (const WatchedRun& run : runs) {
    const int of_run = ExitCodeOfState(run.run.state());
    if (of_run == kExitRunFailed) return kExitRunFailed;
    code = std::max(code, of_run);
  }
  return code;
}

std::string EventJson(const WatchRunsResponse& event) {
  const std::string& token = event.resume_token();
  switch (event.event_case()) {
    case WatchRunsResponse::kRun:
      return Named("run", token, "{\"run\":" + ToJson(event.run()) + "}");
    case WatchRunsResponse::kAttempt:
      return Named("attempt", token, ToJson(event.attempt()));
    case WatchRunsResponse::kPoints:
      return Named("points", token, PointsEvent(event.points()));
    case WatchRunsResponse::kProgress:
      return Named("progress", token, ToJson(event.progress()));
    case WatchRunsResponse::kGap:
      return Named("gap", token, ToJson(event.gap()));
    case WatchRunsResponse::kEnd:
      return Named("end", token, ToJson(event.end()));
    case WatchRunsResponse::kDeleted:
      return Named("deleted", token, ToJson(event.deleted()));
    case WatchRunsResponse::kNotice:
      return Named("notice", token, ToJson(event.notice()));
    default:
      return "";
  }
}

WatchTask TaskOfRuns(std::vector<Run> runs) {
  WatchTask task;
  task.again = "normlab watch";
  for (const Run& run : runs) {
    task.request.add_runs(run.id());
    task.again += " " + run.id();
  }
  task.title = runs.size() == 1 ? runs.front().display_name() : fmt::format("{} runs", runs.size());
  task.runs = std::move(runs);
  return task;
}

absl::StatusOr<WatchOutcome> Watch(Context& context, const WatchTask& task) {
  InterruptGuard guard;
  WatchModel model(task.runs);
  const std::unique_ptr<Observer> observer = MakeObserver(context, task.title);
  WatchStream stream([&context] { return context.Connect(); }, task.request);
  WatchRunsResponse event;
  WatchOutcome outcome;
  while (true) {
    const WatchStream::Result result = stream.Next(kRedraw, event);
    if (result == WatchStream::kEnd) break;
    if (result == WatchStream::kEvent) {
      model.Apply(event);
      if (event.has_notice()) {
        observer->OnProblems({event.notice().problems().begin(), event.notice().problems().end()});
      }
      observer->OnEvent(event, model);
    }
    observer->OnTick(model, NoticeOf(stream));
    outcome.interrupted = InterruptGuard::Interrupted();
    if (outcome.interrupted) break;
  }
  observer->OnFinish(model);
  outcome.runs = model.runs();
  if (outcome.interrupted) {
    SayInterrupted(context, task);
    return outcome;
  }
  if (absl::Status status = stream.status(); !status.ok()) return status;
  return outcome;
}

}  // namespace normlab::client
