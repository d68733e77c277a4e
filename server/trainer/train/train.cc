#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "server/trainer/train/checkpoint.h"
#include "server/trainer/train/checkpoint_schedule.h"
#include "server/trainer/train/data.h"
#include "server/trainer/train/diagnostics.h"
#include "server/trainer/train/first_weights.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/train/probes.h"
#include "server/trainer/train/safetensors.h"
#include "server/trainer/train/schedule.h"
#include "server/trainer/train/spike.h"
#include "server/trainer/train/threads.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {
namespace {

using Clock = std::chrono::steady_clock;

// What waits for its checkpoint tries to write it so often.
constexpr std::chrono::seconds kRetryOfWaiting(2);

// Series that every step has.
enum Series : uint32_t {
  kLoss,
  kGradientNorm,
  kLearningRate,
  kStepMilliseconds,
  kTokensPerSecond,
  kNonFiniteCount,
  kSpike,
  kStepSeriesCount,
};

const std::array<std::string, kStepSeriesCount>& StepSeriesNames() {
  static const std::array<std::string, kStepSeriesCount> names = {"loss",
                                                                  "gradient_norm",
                                                                  "learning_rate",
                                                                  "step_milliseconds",
                                                                  "tokens_per_second",
                                                                  "non_finite_count",
                                                                  "spike"};
  return names;
}

// "loss became NaN at step 12".
std::string DivergenceReason(double loss, double gradient_norm, int64_t step) {
  const bool by_loss = !std::isfinite(loss);
  const double value = by_loss ? loss : gradient_norm;
  return std::string(by_loss ? "loss" : "gradient norm") + " became " +
         (std::isnan(value) ? "NaN" : "infinite") + " at step " + std::to_string(step);
}

// One run from its first step, or the one after its checkpoint, to its end.
class Training {
 public:
  Training(const TrainingSettings& settings, Observer& observer, const MonotonicClock& clock);

  // From the beginning or, as settings say, from a checkpoint. Throws UnreadableFile if that is
  // damaged or gone.
  void Begin();
  Result Run();

 private:
  // Declares series to the observer and returns the index of the first.
  uint32_t DeclareSeries(std::span<const std::string> names);
  // Adds values of series that were declared together to the step's observations.
  void Observe(uint32_t first_series, std::span<const double> values);
  // Whether the step is to be measured from outside: because it was asked for, or at the first step
  // and every probe_every-th.
  bool ProbesDue(int64_t step) const;
  void Probe();
  // One step with everything that is observed in it; the end, if the run has diverged.
  std::optional<Result> Step(int64_t step);
  // What every step has been.
  struct Outcome {
    double loss;
    double gradient_norm;
    int64_t non_finite;  // gradients
    double seconds;
    bool IsFinite() const { return std::isfinite(loss) && std::isfinite(gradient_norm); }
  };
  void ObserveOutcome(int64_t step, const Outcome& outcome);

  // A device is given step after step without waiting; what became of them is read every
  // kReadSteps steps or kReadSeconds, whichever is first. Only steps that something looks into, as
  // diagnostics do, are waited for.
  static constexpr int64_t kReadSteps = 16;
  static constexpr double kReadSeconds = 0.02;
  bool IsLookedInto(int64_t step) const;
  std::optional<Result> GiveStep(int64_t step);
  // Reports the steps that are done, or, waiting, `all` that were given; the end, if that is it.
  std::optional<Result> ReadSteps(bool all);
  // A step that was read later; the end, if the run has diverged at it.
  std::optional<Result> Report(int64_t step, const StepRecord& record, double seconds);
  // True at every `every`-th step and at the last one; never if `every` is 0.
  bool IsDue(int64_t every, int64_t step) const;
  // What the observer asked for after a step; the end, if that is it.
  std::optional<Result> Obey(Request request, int64_t step);
  // False, and why is printed, when it cannot be written.
  bool WriteCheckpoint(int64_t step);
  // Returns when it is written; false when a stop is wanted before.
  bool WaitForCheckpoint(int64_t step);
  TrainingState State() { return {settings_, learner_, *data_, spikes_}; }

  const TrainingSettings& settings_;
  Observer& observer_;
  const MonotonicClock& clock_;
  Learner learner_;
  const std::unique_ptr<DataSource> data_;
  SpikeDetector spikes_;
  std::optional<CheckpointFolder> checkpoints_;
  CheckpointSchedule schedule_;
  int64_t first_step_ = 1;
  std::vector<Batch> batches_;  // of a step
  Diagnostics diagnostics_;
  std::optional<Probes> probes_;  // once something was to be measured
  bool probe_requested_ = false;
  uint32_t series_count_ = 0;
  uint32_t balance_series_ = 0;
  uint32_t validation_series_ = 0;
  uint32_t diagnostics_series_ = 0;
  uint32_t probes_series_ = 0;
  std::vector<Observation> observations_;  // of a step
  int64_t given_ = 0;  // the last step that the device was given without waiting
  int64_t read_ = 0;   // the last of them that was reported
  Clock::time_point read_at_ = Clock::now();
};

Training::Training(const TrainingSettings& settings, Observer& observer,
                   const MonotonicClock& clock)
    : settings_(settings),
      observer_(observer),
      clock_(clock),
      learner_(settings),
      data_(MakeDataSource(settings)),
      schedule_(settings, clock),
      batches_(static_cast<size_t>(settings.accumulate)),
      diagnostics_(settings, learner_) {
  if (!settings.checkpoint_directory.empty()) {
    checkpoints_.emplace(settings.checkpoint_directory, settings.keep_checkpoints);
  }
}

void Training::Begin() {
  if (!settings_.resume_from.empty()) {
    first_step_ = LoadCheckpoint(settings_.resume_from, State()) + 1;
  } else {
    SetFirstWeights(settings_, learner_);
  }
  learner_.Upload();
}

Result Training::Run() {
  observer_.OnModel({.parameter_count = learner_.parameters().parameter_count(),
                     .instruction_set = learner_.Processor()});
  DeclareSeries(StepSeriesNames());
  if (settings_.ffn == "switch") {
    balance_series_ = DeclareSeries(std::array{std::string("balance_loss")});
  }
  if (settings_.validate_every > 0) {
    validation_series_ = DeclareSeries(std::array{std::string("validation_loss")});
  }
  diagnostics_series_ = DeclareSeries(diagnostics_.names());

  for (int64_t step = first_step_; step <= settings_.steps; ++step) {
    if (learner_.device() != nullptr && !IsLookedInto(step)) {
      if (const std::optional<Result> end = GiveStep(step)) return *end;
      continue;
    }
    if (const std::optional<Result> end = ReadSteps(true)) return *end;
    if (const std::optional<Result> end = Step(step)) return *end;
    if (const std::optional<Result> end = Obey(observer_.Requested(), step)) return *end;
  }
  return {Ending::kFinished, settings_.steps, ""};
}

uint32_t Training::DeclareSeries(std::span<const std::string> names) {
  const uint32_t first = series_count_;
  if (!names.empty()) observer_.OnSeries(names);
  series_count_ += static_cast<uint32_t>(names.size());
  return first;
}

void Training::Observe(uint32_t first_series, std::span<const double> values) {
  for (const double value : values) observations_.push_back({first_series++, value});
}

bool Training::IsDue(int64_t every, int64_t step) const {
  return every > 0 && (step % every == 0 || step == settings_.steps);
}

bool Training::ProbesDue(int64_t step) const {
  if (probe_requested_) return true;
  const int64_t every = settings_.probe_every;
  return every > 0 && (step == 1 || step % every == 0);
}

void Training::Probe() {
  probe_requested_ = false;
  if (!probes_) {
    try {
      probes_.emplace(settings_, learner_);
    } catch (const std::exception& error) {
      // Looking at a run must not end it: its text may be gone by now, or memory short.
      if (settings_.probe_every > 0) throw;
      std::cerr << "no probe: " << error.what() << std::endl;
      return;
    }
    probes_series_ = DeclareSeries(probes_->names());
  }
  Observe(probes_series_, probes_->Measure());
}

std::optional<Result> Training::Step(int64_t step) {
  observations_.clear();
  if (ProbesDue(step)) Probe();

  const Clock::time_point start = Clock::now();
  for (Batch& batch : batches_) data_->Next(batch);
  const double loss = learner_.ComputeGradients(step, batches_);
  const double gradient_norm = learner_.GradientNorm();
  const bool finite = std::isfinite(loss) && std::isfinite(gradient_norm);
  const bool diverged = !finite && settings_.stop_on_non_finite;
  // The step at which a run diverges is looked at whenever diagnosing is on.
  const bool diagnose = diagnostics_.Due(step) || (diverged && !diagnostics_.names().empty());
  if (diagnose) diagnostics_.BeforeUpdate();
  if (!diverged) {
    learner_.Clip(gradient_norm);
    learner_.Update(step, LearningRate(settings_, step));
  }
  if (diagnose) Observe(diagnostics_series_, diagnostics_.AfterUpdate());

  ObserveOutcome(step, {loss, gradient_norm, finite ? 0 : learner_.NonFiniteCount(),
                        std::chrono::duration<double>(Clock::now() - start).count()});
  if (settings_.ffn == "switch") Observe(balance_series_, std::array{learner_.balance_loss()});
  // Unlike the loss, of the weights after the update: at the last step, of the finished model.
  if (!diverged && IsDue(settings_.validate_every, step)) {
    Observe(validation_series_, std::array{learner_.Evaluate(data_->Validation())});
  }
  observer_.OnStep(step, observations_);
  if (!diverged) return std::nullopt;
  return Result{Ending::kDiverged, step, DivergenceReason(loss, gradient_norm, step)};
}

void Training::ObserveOutcome(int64_t step, const Outcome& outcome) {
  const int64_t tokens = settings_.batch_size * settings_.sequence_length * settings_.accumulate;
  const int64_t non_finite = outcome.non_finite + (std::isfinite(outcome.loss) ? 0 : 1);
  Observe(kLoss, std::array<double, kStepSeriesCount>{
                     outcome.loss, outcome.gradient_norm, LearningRate(settings_, step),
                     outcome.seconds * 1e3, static_cast<double>(tokens) / outcome.seconds,
                     static_cast<double>(non_finite), spikes_.IsSpike(outcome.loss) ? 1.0 : 0.0});
}

bool Training::IsLookedInto(int64_t step) const {
  return step == settings_.steps || step == settings_.step_limit || ProbesDue(step) ||
         diagnostics_.Due(step) || IsDue(settings_.validate_every, step) ||
         IsDue(settings_.checkpoint_every, step);
}

std::optional<Result> Training::GiveStep(int64_t step) {
  if (read_ == given_) {  // nothing is under way: steps are timed from here
    read_ = step - 1;
    read_at_ = Clock::now();
  }
  if (step - read_ > DeviceLearner::kAhead) {
    learner_.device()->WaitFor(read_ + 1);
    if (const std::optional<Result> end = ReadSteps(false)) return end;
  }
  for (Batch& batch : batches_) data_->Next(batch);
  learner_.device()->GiveStep(step, batches_, LearningRate(settings_, step));
  given_ = step;
  const double seconds = std::chrono::duration<double>(Clock::now() - read_at_).count();
  if (given_ - read_ < kReadSteps && seconds < kReadSeconds) return std::nullopt;
  return ReadSteps(false);
}

std::optional<Result> Training::ReadSteps(bool all) {
  std::vector<StepRecord> records;
  while (read_ + static_cast<int64_t>(records.size()) < given_) {
    const int64_t step = read_ + static_cast<int64_t>(records.size()) + 1;
    const auto record = all ? learner_.device()->WaitFor(step) : learner_.device()->RecordOf(step);
    if (!record) break;
    records.push_back(*record);
  }
  if (records.empty()) return std::nullopt;
  const double seconds = std::chrono::duration<double>(Clock::now() - read_at_).count() /
                         static_cast<double>(records.size());
  read_at_ = Clock::now();
  Request request = Request::kGoOn;
  for (const StepRecord& record : records) {
    if (std::optional<Result> end = Report(++read_, record, seconds)) return end;
    request = std::max(request, observer_.Requested());
  }
  if (request == Request::kGoOn && !(checkpoints_ && schedule_.IsOld())) return std::nullopt;
  // What was given before is part of the run.
  if (std::optional<Result> end = ReadSteps(true)) return end;
  return Obey(request, read_);
}

std::optional<Result> Training::Report(int64_t step, const StepRecord& record, double seconds) {
  const Outcome outcome = {record.loss, record.gradient_norm,
                           static_cast<int64_t>(record.non_finite), seconds};
  const bool diverged = !outcome.IsFinite() && settings_.stop_on_non_finite;
  observations_.clear();
  if (diverged && !diagnostics_.names().empty()) {
    // The device has updated nothing since, so the step comes out the same again.
    learner_.device()->RepeatGradients(step);
    diagnostics_.BeforeUpdate();
    Observe(diagnostics_series_, diagnostics_.AfterUpdate());
  }
  ObserveOutcome(step, outcome);
  observer_.OnStep(step, observations_);
  if (!diverged) return std::nullopt;
  return Result{Ending::kDiverged, step, DivergenceReason(record.loss, record.gradient_norm, step)};
}

std::optional<Result> Training::Obey(Request request, int64_t step) {
  if (request == Request::kStop) return Result{Ending::kStopped, step, "stop requested"};
  if (request == Request::kProbe) probe_requested_ = true;
  // After the last step there is nothing to come back for.
  const bool last = step == settings_.steps;
  const bool pause = request == Request::kPause && !last;
  if (pause && !checkpoints_) {
    return Result{Ending::kStopped, step, "paused without a checkpoint folder"};
  }
  const bool due = checkpoints_ && schedule_.IsDue(step);
  // Without its last weights a run would have been for nothing.
  if (pause || (last && due)) {
    if (!WaitForCheckpoint(step)) return Result{Ending::kStopped, step, "stop requested"};
  } else if (due && !WriteCheckpoint(step)) {
    std::cerr << "training goes on, and tries again in " << CheckpointSchedule::kRetry.count()
              << " s" << std::endl;
  }
  return pause ? std::optional<Result>({Ending::kPaused, step, "paused"}) : std::nullopt;
}

bool Training::WriteCheckpoint(int64_t step) {
  learner_.DownloadWeights();
  learner_.DownloadOptimizer();
  try {
    const CheckpointFolder::Checkpoint written = checkpoints_->Write(step, State());
    observer_.OnCheckpoint(step, written.file, written.bytes);
  } catch (const CheckpointNotWritten& error) {
    std::cerr << error.what() << std::endl;
    schedule_.Failed();
    return false;
  }
  schedule_.Written();
  return true;
}

bool Training::WaitForCheckpoint(int64_t step) {
  while (!WriteCheckpoint(step)) {
    std::cerr << "the run waits for it" << std::endl;
    const auto next = clock_() + kRetryOfWaiting;
    while (clock_() < next) {
      if (observer_.Requested() == Request::kStop) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return true;
}

}  // namespace

Result Train(const TrainingSettings& settings, Observer& observer, const MonotonicClock& clock) {
  try {
    SetThreads(settings.threads);
    Training training(settings, observer, clock);
    try {
      training.Begin();
    } catch (const UnreadableFile& error) {
      if (settings.resume_from.empty()) throw;  // of init_file: there is no other
      return {Ending::kUnreadable, 0, error.what() + ("; " + PutAside(settings.resume_from))};
    }
    return training.Run();
  } catch (const std::runtime_error&) {
    throw;
  } catch (const std::exception& error) {
    // Torch appends a stack trace, which says nothing to the owner of a run.
    const std::string message = error.what();
    throw std::runtime_error(message.substr(0, message.find('\n')));
  }
}

}  // namespace normlab::trainer
