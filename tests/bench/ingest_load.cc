// Many trainers in one process: each has the real spool, observer and session of a trainer and
// speaks to a real server, but computes nothing. tests/bench/ingest.py starts the server and the
// runs, whose own trainer processes stand aside, and reads what is printed here at the end: one
// line of JSON.
//
//   ingest_load --data DIR --seconds 60 [--rate STEPS_PER_SECOND] [--series 3] [--wide 2000] RUN...
//
// --rate 0 is as fast as possible; --wide N gives the last run N series and leaves its times out.
// Value i of step s is s / 7 + i. What a report costs is told twice: the time that went by, in
// which others may have had the core, and, with a --rate, the thread's own processor time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "server/base/files.h"
#include "server/base/log.h"
#include "server/base/spool.h"
#include "server/trainer/link/session.h"
#include "server/trainer/link/spool_observer.h"

namespace normlab::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::chrono::minutes kLongestWait(5);
constexpr int kAttempt = 1;

struct Load {
  std::filesystem::path data;
  double seconds = 5;
  int64_t rate = 0;  // steps a second; 0: no pause between steps
  int64_t series = 3;
  int64_t wide = 0;
  std::vector<std::string> runs;
};

// Trainers begin together, so that rates are those of all of them at once.
class Gate {
 public:
  explicit Gate(size_t expected) : missing_(expected) {}
  void Wait() {
    std::unique_lock lock(mutex_);
    if (--missing_ == 0) open_.notify_all();
    open_.wait(lock, [this] { return missing_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable open_;
  size_t missing_;
};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "ingest_load: %s\n", what.c_str());
  std::_Exit(1);
}

// Processor time that this thread has had, in seconds.
double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// When step s was reported, for the thread that waits until it is durable. One writes, one reads.
class Reported {
 public:
  void Add(Clock::time_point when) {
    std::lock_guard lock(mutex_);
    times_.push_back(when);
    more_.notify_one();
  }
  void End() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    more_.notify_one();
  }
  // Of step `index` + 1; false when there is none and none will come.
  bool Next(size_t index, Clock::time_point& when) {
    std::unique_lock lock(mutex_);
    more_.wait(lock, [&] { return index < times_.size() || ended_; });
    if (index >= times_.size()) return false;
    when = times_[index];
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<Clock::time_point> times_;
  bool ended_ = false;
};

class Trainer {
 public:
  Trainer(const Load& load, const std::string& run, int64_t series) : load_(load), series_(series) {
    const std::filesystem::path directory =
        load.data / "attempts" / (run + "-" + std::to_string(kAttempt));
    absl::StatusOr<std::unique_ptr<Spool>> spool = Spool::Open(directory / "spool");
    const absl::StatusOr<std::string> token = ReadFile(directory / "token");
    if (!spool.ok()) Die(spool.status().ToString());
    if (!token.ok()) Die(token.status().ToString());
    spool_ = *std::move(spool);
    SessionOptions options;
    options.hello.set_run(run);
    options.hello.set_attempt(kAttempt);
    options.hello.set_token(*token);
    options.hello.set_trainer_version("load");
    options.endpoint_file = load.data / "endpoint.json";
    session_ = std::make_unique<Session>(options, spool_.get());
  }

  void Run(Gate& gate) {
    if (!session_->WaitForAssignment().ok()) Die("the server has no assignment for us");
    SpoolObserver observer(spool_.get(), [this] { return session_->requested(); });
    observer.OnModel({.parameter_count = 1, .instruction_set = "none"});
    std::vector<std::string> names = {"loss", "gradient_norm", "learning_rate"};
    for (int64_t i = 3; i < series_; ++i) names.push_back("extra/" + std::to_string(i));
    observer.OnSeries(names);
    first_step_sequence_ = spool_->last_sequence() + 1;
    std::thread acks([this] { WatchAcks(); });
    gate.Wait();
    began_ = Clock::now();
    Report(observer);
    reported_.End();
    acks.join();
    worker::v1::Finished finished;
    finished.set_outcome(worker::v1::Finished::OUTCOME_SUCCEEDED);
    finished.set_last_step(steps_);
    observer.Finish(finished);
    if (!session_->Finish(kLongestWait)) Die("not everything was stored");
  }

  int64_t steps() const { return steps_; }
  int64_t points() const { return steps_ * series_; }
  Clock::time_point began() const { return began_; }
  Clock::time_point all_durable() const { return all_durable_; }
  const std::vector<double>& report_seconds() const { return report_seconds_; }
  const std::vector<double>& report_cpu_seconds() const { return report_cpu_seconds_; }
  const std::vector<double>& durable_seconds() const { return durable_seconds_; }

 private:
  void Report(SpoolObserver& observer) {
    std::vector<Observation> observations(static_cast<size_t>(series_));
    const Clock::time_point end = began_ + nanoseconds(static_cast<int64_t>(load_.seconds * 1e9));
    while (Clock::now() < end && (load_.rate == 0 || steps_ < load_.rate * load_.seconds)) {
      const int64_t step = ++steps_;
      for (uint32_t i = 0; i < observations.size(); ++i) {
        observations[i] = {i, static_cast<double>(step) / 7 + i};
      }
      // Asking the kernel takes longer than a report that wakes nobody.
      const double cpu = load_.rate > 0 ? ThreadSeconds() : 0;
      const Clock::time_point before = Clock::now();
      observer.OnStep(step, observations);
      const Clock::time_point after = Clock::now();
      if (load_.rate > 0) report_cpu_seconds_.push_back(ThreadSeconds() - cpu);
      report_seconds_.push_back(duration<double>(after - before).count());
      reported_.Add(before);
      if (load_.rate > 0) {
        std::this_thread::sleep_until(began_ + step * nanoseconds(1000000000) / load_.rate);
      }
    }
  }

  void WatchAcks() {
    Clock::time_point reported;
    for (size_t index = 0; reported_.Next(index, reported); ++index) {
      if (!spool_->WaitUntilAcked(first_step_sequence_ + index, kLongestWait)) {
        Die("a step was not stored for minutes");
      }
      all_durable_ = Clock::now();
      durable_seconds_.push_back(duration<double>(all_durable_ - reported).count());
    }
  }

  const Load& load_;
  const int64_t series_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<Session> session_;
  Reported reported_;
  uint64_t first_step_sequence_ = 0;
  int64_t steps_ = 0;
  Clock::time_point began_, all_durable_;
  std::vector<double> report_seconds_, report_cpu_seconds_, durable_seconds_;
};

double Quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<int64_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Load ReadArguments(int argc, char** argv) {
  Load load;
  std::map<std::string, std::string> values;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      load.runs.push_back(word);
    } else if (++i < argc) {
      values[word] = argv[i];
    }
  }
  const auto whole = [&](const char* name, int64_t& into) {
    if (values.contains(name) && !absl::SimpleAtoi(values[name], &into)) Die(name);
  };
  load.data = values["--data"];
  whole("--rate", load.rate);
  whole("--series", load.series);
  whole("--wide", load.wide);
  if (values.contains("--seconds") && !absl::SimpleAtod(values["--seconds"], &load.seconds)) {
    Die("--seconds");
  }
  if (load.data.empty() || load.runs.empty()) Die("--data DIR ... RUN...");
  return load;
}

void Print(const std::vector<std::unique_ptr<Trainer>>& trainers, const Load& load) {
  std::vector<double> report, report_cpu, durable;
  Clock::time_point began = Clock::time_point::max(), ended = Clock::time_point::min();
  int64_t points = 0;
  std::string steps;
  for (size_t i = 0; i < trainers.size(); ++i) {
    const Trainer& trainer = *trainers[i];
    points += trainer.points();
    steps += (i == 0 ? "" : ", ") + std::to_string(trainer.steps());
    if (load.wide > 0 && i + 1 == trainers.size()) continue;
    began = std::min(began, trainer.began());
    ended = std::max(ended, trainer.all_durable());
    report.insert(report.end(), trainer.report_seconds().begin(), trainer.report_seconds().end());
    report_cpu.insert(report_cpu.end(), trainer.report_cpu_seconds().begin(),
                      trainer.report_cpu_seconds().end());
    durable.insert(durable.end(), trainer.durable_seconds().begin(),
                   trainer.durable_seconds().end());
  }
  std::printf(
      "{\"points\": %lld, \"seconds\": %.3f, \"report_us\": {\"median\": %.2f, \"p99\": %.2f}, "
      "\"report_cpu_us\": {\"mean\": %.2f, \"p99\": %.2f}, "
      "\"durable_ms\": {\"median\": %.2f, \"p99\": %.2f, \"max\": %.2f}, \"steps\": [%s]}\n",
      static_cast<long long>(points), duration<double>(ended - began).count(),
      Quantile(report, 0.5) * 1e6, Quantile(report, 0.99) * 1e6, Mean(report_cpu) * 1e6,
      Quantile(report_cpu, 0.99) * 1e6, Quantile(durable, 0.5) * 1e3, Quantile(durable, 0.99) * 1e3,
      Quantile(durable, 1) * 1e3, steps.c_str());
}

int Main(int argc, char** argv) {
  StartLogging("warning");
  const Load load = ReadArguments(argc, argv);
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (size_t i = 0; i < load.runs.size(); ++i) {
    const bool wide = load.wide > 0 && i + 1 == load.runs.size();
    trainers.push_back(
        std::make_unique<Trainer>(load, load.runs[i], wide ? load.wide : load.series));
  }
  Gate gate(trainers.size());
  std::vector<std::thread> threads;
  for (const auto& trainer : trainers) threads.emplace_back([&] { trainer->Run(gate); });
  for (std::thread& thread : threads) thread.join();
  Print(trainers, load);
  return 0;
}

}  // namespace
}  // namespace normlab::trainer

int main(int argc, char** argv) { return normlab::trainer::Main(argc, argv); }
