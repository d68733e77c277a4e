// An engine without LibTorch that does what a script says: everything about a run but the training
// can be tested with it. It implements server/trainer/trainer.h and is linked into
// normlab-fake-trainer.
//
// The script is in the environment, as KEY=VALUE pairs divided by commas: NORMLAB_FAKE_ENGINE for
// every run, NORMLAB_FAKE_ENGINE_7 for the runs with seed 7.
//   steps_per_second=N  pace; without it, as fast as possible
//   value=inverse|step|clock|steady
//                       the loss of step s: 4 / s (default), s, or when it was made, in
//                       milliseconds since 1970 by this machine's clock, or in nanoseconds of the
//                       steady clock, which all processes of a machine share
//   series=N            so many series more: extra/1 ... each with the value step + its number
//   nan_at=N            the loss of step N is not a number; likewise
//   plus_inf_at=N, minus_inf_at=N  it is +Infinity, -Infinity,
//   zero_at=N, negative_at=N       0, -1, and
//   missing_at=N        step N has no loss
//   spike_at=N          the loss of step N is a hundred times what it would be; such a run has the
//                       series spike as well, 1 at step N and else 0
//   gradient_nan_at=N   the gradient norm of step N is not a number
//   throw_at=N          Train throws at step N
//   oom_at=N            Train throws at step N what torch says when a GPU's memory is full
//   gpu_mib=N           on a GPU it takes so much of its memory before the first step, a quarter at
//                       a time and within its budget, as the engine does; there are
//   gpu_total_mib=N     (81559 unless set), and nobody else has any of them
//   gpus=N              of every run: on so many GPUs this trainer trains one (0: on none)
//   crash_at=N          the process dies of SIGSEGV at step N
//   exit_at=N           the process exits at step N, without a word, with the code
//   exit_code=N         (9 unless set)
//   hang_at=N           step N does not come before something is requested
//   gate=DIR            no step comes before there is a file DIR/SEED, unless something is
//   requested;
//                       its word says what comes then: finish (all other steps), diverge, throw or
//                       exit
//   ignore_stop=1       requests are not looked at
// After a request for a probe the next step has one value more, log_z, which is its step.
// A checkpoint is a file step-N.checkpoint with the number of steps done, N, in it. Losses depend
// on the step alone, so a run that went on from one has the losses of a run that was never paused.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/trainer/model/memory_budget.h"
#include "server/trainer/train/checkpoint_schedule.h"
#include "server/trainer/trainer.h"
#include "tests/non_finite.h"

namespace normlab::trainer {
namespace {

class Script {
 public:
  explicit Script(int64_t seed) {
    Parse(std::getenv("NORMLAB_FAKE_ENGINE"));
    Parse(std::getenv(("NORMLAB_FAKE_ENGINE_" + std::to_string(seed)).c_str()));
  }
  std::string Text(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? "" : found->second;
  }
  int64_t Number(const std::string& key) const {
    return std::strtoll(Text(key).c_str(), nullptr, 10);
  }

 private:
  void Parse(const char* script) {
    std::istringstream stream(script == nullptr ? "" : script);
    for (std::string pair; std::getline(stream, pair, ',');) {
      const size_t equals = pair.find('=');
      values_[pair.substr(0, equals)] = equals == pair.npos ? "1" : pair.substr(equals + 1);
    }
  }

  std::map<std::string, std::string> values_;
};

constexpr char kTorchOutOfMemory[] =
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 139.81 GiB of "
    "which 1.25 GiB is free. Process 4711 has 135.00 GiB memory in use. Including non-PyTorch "
    "memory, this process has 3.56 GiB memory in use.";

double WallMilliseconds() {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

double SteadyNanoseconds() {
  using Nanoseconds = std::chrono::duration<double, std::nano>;
  return Nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Loss(const Script& script, int64_t step) {
  if (step == script.Number("nan_at")) return kNan;
  if (step == script.Number("plus_inf_at")) return kInfinity;
  if (step == script.Number("minus_inf_at")) return -kInfinity;
  if (step == script.Number("zero_at")) return 0;
  if (step == script.Number("negative_at")) return -1;
  const auto s = static_cast<double>(step);
  if (script.Text("value") == "clock") return WallMilliseconds();
  if (script.Text("value") == "steady") return SteadyNanoseconds();
  const double loss = script.Text("value") == "step" ? s : 4 / s;
  return step == script.Number("spike_at") ? 100 * loss : loss;
}

double GradientNorm(const Script& script, int64_t step, double loss) {
  return step == script.Number("gradient_nan_at") ? kNan : loss / 2;
}

// Why a run that stops on such numbers ends here; empty if it goes on.
std::string Divergence(int64_t step, double loss, double gradient_norm) {
  if (std::isfinite(loss) && std::isfinite(gradient_norm)) return "";
  const bool is_loss = !std::isfinite(loss);
  const double value = is_loss ? loss : gradient_norm;
  const char* const what = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  return std::string(is_loss ? "loss" : "gradient norm") + " is " + what + " at step " +
         std::to_string(step);
}

void Pace(const Script& script, int64_t step, std::chrono::steady_clock::time_point start) {
  const int64_t steps_per_second = script.Number("steps_per_second");
  if (steps_per_second <= 0) return;
  std::this_thread::sleep_until(start +
                                step * std::chrono::nanoseconds(1000000000) / steps_per_second);
}

// True when a probe was requested meanwhile.
bool Misbehave(const Script& script, int64_t step, Observer& observer) {
  if (step == script.Number("throw_at")) throw std::runtime_error("the script says throw");
  if (step == script.Number("crash_at")) {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it and exit
    raise(SIGSEGV);
  }
  if (step == script.Number("oom_at")) throw std::runtime_error(kTorchOutOfMemory);
  if (step == script.Number("exit_at")) {
    const std::string code = script.Text("exit_code");
    _exit(code.empty() ? 9 : std::atoi(code.c_str()));
  }
  if (step != script.Number("hang_at")) return false;
  Request requested = Request::kGoOn;
  while (script.Number("ignore_stop") != 0 || requested == Request::kGoOn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    requested = observer.Requested();
  }
  return requested == Request::kProbe;
}

void TakeGpuMemory(const Script& script, const TrainingSettings& settings) {
  if (settings.device == "cpu") return;
  MemoryBudget budget;
  budget.Limit(static_cast<size_t>(settings.gpu_memory_bytes),
               static_cast<size_t>(settings.gpu_context_bytes));
  const int64_t total_mib = script.Number("gpu_total_mib");
  const size_t total = static_cast<size_t>(total_mib > 0 ? total_mib : 81559) << 20;
  const size_t piece = (static_cast<size_t>(script.Number("gpu_mib")) << 20) / 4;
  for (int i = 0; i < 4; ++i) {
    const size_t free = total - std::min(total, budget.held());
    if (!budget.Allows(piece) || piece > free) {
      throw std::runtime_error(budget.Refusal(piece, {.free = free, .total = total}));
    }
    budget.Take(piece);
  }
}

// The word that a run's steps wait for; empty when there is no gate, or something was requested.
std::string WordAtGate(const Script& script, int64_t seed, Observer& observer) {
  const std::string directory = script.Text("gate");
  if (directory.empty()) return "";
  const std::filesystem::path path = std::filesystem::path(directory) / std::to_string(seed);
  while (true) {
    std::string word;
    if (std::ifstream(path) >> word) return word;
    if (observer.Requested() != Request::kGoOn) return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Keeps the latest `keep_checkpoints`.
class Checkpoints {
 public:
  Checkpoints(const TrainingSettings& settings, const MonotonicClock& clock)
      : settings_(settings), schedule_(settings, clock) {}

  // Steps done when training begins; absent when the checkpoint cannot be read.
  std::optional<int64_t> StepsDone() const {
    if (settings_.resume_from.empty()) return 0;
    int64_t step = 0;
    if (std::ifstream(settings_.resume_from) >> step) return step;
    std::error_code ignored;  // it is gone
    std::filesystem::rename(settings_.resume_from, settings_.resume_from + ".unreadable", ignored);
    return std::nullopt;
  }
  bool IsDue(int64_t step) const {
    return !settings_.checkpoint_directory.empty() && schedule_.IsDue(step);
  }
  // False when there is no room for it.
  bool Write(int64_t step, Observer& observer) {
    if (written_step_ == step) return true;
    const std::string name = "step-" + std::to_string(step) + ".checkpoint";
    const std::filesystem::path path = std::filesystem::path(settings_.checkpoint_directory) / name;
    std::ofstream file(path);
    file << step << "\n";
    if (!file.flush()) {
      std::filesystem::remove(path);
      std::cerr << "no checkpoint of step " << step << std::endl;
      schedule_.Failed();
      return false;
    }
    observer.OnCheckpoint(step, name, static_cast<int64_t>(file.tellp()));
    written_step_ = step;
    schedule_.Written();
    written_.push_back(path);
    if (static_cast<int64_t>(written_.size()) <= settings_.keep_checkpoints) return true;
    std::filesystem::remove(written_.front());
    written_.erase(written_.begin());
    return true;
  }

 private:
  const TrainingSettings& settings_;
  CheckpointSchedule schedule_;
  int64_t written_step_ = 0;
  std::vector<std::filesystem::path> written_;
};

// False when it is to stop before there is room.
bool WaitForCheckpoint(int64_t step, Checkpoints& checkpoints, Observer& observer) {
  while (!checkpoints.Write(step, observer)) {
    if (observer.Requested() == Request::kStop) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

// What to do after `step`, once it is told: end, or measure the next one.
std::optional<Result> AnswerRequest(const Script& script, const TrainingSettings& settings,
                                    int64_t step, Checkpoints& checkpoints, Observer& observer,
                                    bool& probe) {
  if (script.Number("ignore_stop") != 0) return std::nullopt;
  const Request requested = observer.Requested();
  probe = requested == Request::kProbe;
  if (probe || requested == Request::kGoOn) return std::nullopt;
  if (requested == Request::kStop || settings.checkpoint_directory.empty()) {
    return Result{Ending::kStopped, step, "stopped"};
  }
  if (step == settings.steps) return std::nullopt;  // it is done anyway
  if (!WaitForCheckpoint(step, checkpoints, observer)) {
    return Result{Ending::kStopped, step, "stopped"};
  }
  return Result{Ending::kPaused, step, ""};
}

}  // namespace

Result Train(const TrainingSettings& settings, Observer& observer, const MonotonicClock& clock) {
  const Script script(settings.seed);
  TakeGpuMemory(script, settings);
  observer.OnModel({.parameter_count = settings.layers * 12 * settings.d_model * settings.d_model,
                    .instruction_set = "fake"});
  std::vector<std::string> names = {"loss", "gradient_norm", "learning_rate"};
  for (int64_t i = 1; i <= script.Number("series"); ++i) {
    names.push_back("extra/" + std::to_string(i));
  }
  const bool has_spike = script.Number("spike_at") > 0;
  if (has_spike) names.push_back("spike");
  observer.OnSeries(names);
  const auto start = std::chrono::steady_clock::now();
  std::vector<Observation> observations(names.size());
  Checkpoints checkpoints(settings, clock);
  const std::optional<int64_t> resumed_from = checkpoints.StepsDone();
  if (!resumed_from) return {Ending::kUnreadable, 0, "no checkpoint " + settings.resume_from};
  const int64_t done = *resumed_from;
  bool probe = false, declared = false;
  for (int64_t step = done + 1; step <= settings.steps; ++step) {
    if (Misbehave(script, step, observer)) probe = true;
    const std::string word = WordAtGate(script, settings.seed, observer);
    if (word == "throw") throw std::runtime_error("the gate says throw");
    if (word == "exit") _exit(9);
    const double loss = word == "diverge" ? kNan : Loss(script, step);
    const double gradient_norm = GradientNorm(script, step, loss);
    for (uint32_t i = 0; i < observations.size(); ++i) {
      observations[i] = {i, static_cast<double>(step) + i - 2};
    }
    observations[0].value = loss;
    observations[1].value = gradient_norm;
    observations[2].value = settings.learning_rate;
    if (has_spike) observations.back().value = step == script.Number("spike_at") ? 1 : 0;
    if (probe) {
      if (!std::exchange(declared, true)) observer.OnSeries(std::vector<std::string>{"log_z"});
      observations.push_back({static_cast<uint32_t>(names.size()), static_cast<double>(step)});
    }
    if (step == script.Number("missing_at")) observations.erase(observations.begin());
    observer.OnStep(step, observations);
    observations.resize(names.size());
    const std::string divergence = Divergence(step, loss, gradient_norm);
    if (!divergence.empty() && settings.stop_on_non_finite) {
      return {Ending::kDiverged, step, divergence};
    }
    if (checkpoints.IsDue(step) && !checkpoints.Write(step, observer) && step == settings.steps &&
        !WaitForCheckpoint(step, checkpoints, observer)) {
      return {Ending::kStopped, step, "stopped"};
    }
    if (const auto ended = AnswerRequest(script, settings, step, checkpoints, observer, probe)) {
      return *ended;
    }
    Pace(script, step - done, start);
  }
  return {Ending::kFinished, settings.steps, ""};
}

std::string_view EngineVersion() { return "fake"; }

int64_t GpusOfARun() { return Script(-1).Number("gpus"); }

}  // namespace normlab::trainer
