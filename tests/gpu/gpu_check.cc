// normlab-gpu-check: the engine on the GPU against itself on the processor.
//
//   normlab-gpu-check parity   the same runs on both, and twice on the GPU: a line each, exit code
//   1
//                              if one differs
//   normlab-gpu-check memory   whether memory budgets are kept, and what CUDA takes besides
//   normlab-gpu-check speed    steps a second on the GPU, with and without recorded steps
//
// Of the engine it knows trainer.h only.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "server/base/gpu_context.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {
namespace {

class Curves final : public Observer {
 public:
  void OnModel(const ModelSummary& summary) override { model = summary; }
  void OnSeries(std::span<const std::string> declared) override {
    names_.insert(names_.end(), declared.begin(), declared.end());
  }
  void OnStep(int64_t /*step*/, std::span<const Observation> observations) override {
    for (const Observation& observation : observations) {
      if (names_[observation.series] == "loss") loss.push_back(observation.value);
      if (names_[observation.series] == "gradient_norm") norm.push_back(observation.value);
    }
    if (loss.size() == kWarmUp) warm = std::chrono::steady_clock::now();
  }
  void OnCheckpoint(int64_t, const std::string&, int64_t) override {}
  Request Requested() override { return Request::kGoOn; }

  static constexpr size_t kWarmUp = 64;

  ModelSummary model;
  std::vector<double> loss;
  std::vector<double> norm;
  std::chrono::steady_clock::time_point warm;  // after so many steps

 private:
  std::vector<std::string> names_;
};

Curves CurvesOf(const TrainingSettings& settings) {
  Curves curves;
  Train(settings, curves);
  return curves;
}

// Infinite where one has a number and the other has not.
double WorstRelativeError(const std::vector<double>& actual, const std::vector<double>& expected) {
  if (actual.size() != expected.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(actual[i] - expected[i]) / std::abs(expected[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

struct Case {
  std::string name;
  TrainingSettings settings;
};

// The article's model, ten steps with its warmup: before chaos can carry a last bit far.
TrainingSettings ParitySettings() {
  TrainingSettings settings;
  settings.layers = 6;
  settings.steps = 10;
  settings.warmup_steps = 120;
  settings.diagnose_every = 0;
  return settings;
}

std::vector<Case> ParityCases() {
  std::vector<Case> cases;
  const auto add = [&](std::string name, const std::function<void(TrainingSettings&)>& change) {
    cases.push_back({std::move(name), ParitySettings()});
    change(cases.back().settings);
  };
  for (const char* placement : {"pre", "post", "post-single", "sandwich", "olmo2", "normformer",
                                "deepnorm", "admin", "rezero", "layerscale", "b2t", "residual-dual",
                                "mix", "hybrid", "hybrid-star", "lns", "none"}) {
    add(std::string("placement ") + placement, [&](TrainingSettings& s) {
      s.placement = placement;
      if (s.placement == "deepnorm" || s.placement == "admin") s.init = placement;
      if (s.placement == "olmo2") s.qk_norm = "rms-full";
      if (s.placement.starts_with("hybrid")) s.qk_norm = "rms-head";
    });
  }
  for (const char* norm : {"rmsnorm", "dyt"}) {
    add(std::string("norm ") + norm, [&](TrainingSettings& s) { s.norm = norm; });
  }
  for (const char* activation : {"relu", "gelu", "swiglu"}) {
    add(std::string("activation ") + activation,
        [&](TrainingSettings& s) { s.activation = activation; });
  }
  for (const char* positions : {"sinusoidal", "rotary"}) {
    add(std::string("positions ") + positions,
        [&](TrainingSettings& s) { s.positions = positions; });
  }
  add("dropout 0.1", [](TrainingSettings& s) { s.dropout = 0.1; });
  add("clip_norm 0.1", [](TrainingSettings& s) { s.clip_norm = 0.1; });
  add("sgd", [](TrainingSettings& s) { s.optimizer = "sgd"; });
  add("accumulate 2", [](TrainingSettings& s) { s.accumulate = 2; });
  add("cuda_graph", [](TrainingSettings& s) { s.cuda_graph = true; });
  return cases;
}

// Single precision on both sides, added in another order, over ten steps of AdamW.
constexpr double kLossTolerance = 1e-4;
constexpr double kNormTolerance = 1e-3;

// True if it passed; prints one line.
bool CheckParity(const Case& c) {
  try {
    TrainingSettings on_gpu = c.settings;
    on_gpu.device = "cuda";
    const Curves cpu = CurvesOf(c.settings);
    const Curves gpu = CurvesOf(on_gpu);
    const Curves again = CurvesOf(on_gpu);
    const double loss = WorstRelativeError(gpu.loss, cpu.loss);
    const double norm = WorstRelativeError(gpu.norm, cpu.norm);
    const bool near = loss <= kLossTolerance && norm <= kNormTolerance;
    const bool same = again.loss == gpu.loss && again.norm == gpu.norm;
    std::printf("%-26s %11.1e %11.1e   %-9s %s\n", c.name.c_str(), loss, norm,
                same ? "same bits" : "DIFFERS", near && same ? "ok" : "FAILED");
    return near && same;
  } catch (const std::exception& error) {
    std::printf("%-26s FAILED: %s\n", c.name.c_str(), error.what());
    return false;
  }
}

// What was recorded once has to give what is given piece by piece.
bool CheckGraph() {
  TrainingSettings settings = ParitySettings();
  settings.device = "cuda";
  settings.steps = 150;
  settings.dropout = 0.1;
  const Curves plain = CurvesOf(settings);
  settings.cuda_graph = true;
  const Curves recorded = CurvesOf(settings);
  const bool same = plain.loss == recorded.loss && plain.norm == recorded.norm;
  std::printf("%-26s %23s   %-9s %s\n", "cuda_graph against none", "",
              same ? "same bits" : "DIFFERS", same ? "ok" : "FAILED");
  return same;
}

int Parity() {
  std::printf("%-26s %11s %11s   %-9s\n", "run", "loss", "norm", "repeated");
  int failed = 0;
  for (const Case& c : ParityCases()) {
    if (!CheckParity(c)) ++failed;
    std::fflush(stdout);
  }
  if (!CheckGraph()) ++failed;
  std::printf("%d failed; relative errors of %lld steps may be %.0e and %.0e\n", failed,
              static_cast<long long>(ParitySettings().steps), kLossTolerance, kNormTolerance);
  return failed == 0 ? 0 : 1;
}

double StepsPerSecond(TrainingSettings settings, bool recorded) {
  settings.device = "cuda";
  settings.cuda_graph = recorded;
  settings.diagnose_every = 0;
  const Curves curves = CurvesOf(settings);
  const auto steps = static_cast<double>(curves.loss.size() - Curves::kWarmUp);
  return steps /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - curves.warm).count();
}

int Speed() {
  TrainingSettings article;
  article.steps = 1064;
  TrainingSettings larger;
  larger.layers = 8;
  larger.d_model = 512;
  larger.heads = 8;
  larger.ffn_width = 2048;
  larger.sequence_length = 256;
  larger.batch_size = 8;
  larger.vocab_size = 512;
  larger.init = "gpt2";  // drawing Flax's numbers takes longer
  larger.learning_rate = 1e-4;
  larger.steps = 264;
  for (const auto& [name, settings] : {Case{"article", article}, Case{"d512x8", larger}}) {
    for (const bool recorded : {false, true}) {
      std::printf("normlab%s\t%s\t%.1f\n", recorded ? ", cuda_graph" : "", name.c_str(),
                  StepsPerSecond(settings, recorded));
      std::fflush(stdout);
    }
  }
  return 0;
}

// --- memory ---

// Why two steps do not run within this budget; empty if they do.
std::string RefusalWithin(int64_t bytes, Curves& curves) {
  TrainingSettings settings = ParitySettings();
  settings.device = "cuda";
  settings.steps = 2;
  settings.gpu_memory_bytes = bytes;
  try {
    Train(settings, curves);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

// MiB that the driver counts for this process; -1 where it does not show it, as in some containers.
int64_t MebibytesOfThisProcess() {
  FILE* list =
      popen("nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits", "r");
  if (list == nullptr) return -1;
  int64_t found = -1;
  long pid = 0, mebibytes = 0;
  while (std::fscanf(list, "%ld, %ld\n", &pid, &mebibytes) == 2) {
    if (pid == getpid()) found = mebibytes;
  }
  pclose(list);
  return found;
}

// The budget is kept, to the smallest that holds the run, and what CUDA takes besides is no more
// than servers and trainers count with.
int Memory() {
  class Looking final : public Observer {
   public:
    void OnModel(const ModelSummary&) override {}
    void OnSeries(std::span<const std::string>) override {}
    void OnStep(int64_t, std::span<const Observation>) override {
      mebibytes = MebibytesOfThisProcess();
    }
    void OnCheckpoint(int64_t, const std::string&, int64_t) override {}
    Request Requested() override { return Request::kGoOn; }
    int64_t mebibytes = -1;
  };
  constexpr int64_t kMiB = int64_t{1} << 20;
  Curves curves;
  int64_t low = 0, high = 4096;  // MiB; the first is too little
  if (const std::string why = RefusalWithin(high * kMiB, curves); !why.empty()) {
    std::printf("FAILED: 4096 MiB do not hold the run: %s\n", why.c_str());
    return 1;
  }
  std::string refusal;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    const std::string why = RefusalWithin(middle * kMiB, curves);
    (why.empty() ? high : low) = middle;
    if (!why.empty()) refusal = why;
  }
  std::printf("the run's arrays take %lld MiB; with less: %s\n", static_cast<long long>(high),
              refusal.c_str());
  if (refusal.find("out of GPU memory: asked for") != 0) {
    std::printf("FAILED: that is not how a budget refuses\n");
    return 1;
  }
  TrainingSettings settings = ParitySettings();
  settings.device = "cuda";
  Looking looking;
  Train(settings, looking);
  if (looking.mebibytes < 0) {
    std::printf("the driver does not show this process here: what CUDA takes is not measured\n");
    return 0;
  }
  const int64_t context = looking.mebibytes - high;
  const bool fits = context <= kGpuContextBytes / kMiB;
  std::printf(
      "the driver counts %lld MiB for the process, so CUDA takes %lld of at most %lld  %s\n",
      static_cast<long long>(looking.mebibytes), static_cast<long long>(context),
      static_cast<long long>(kGpuContextBytes / kMiB), fits ? "ok" : "FAILED");
  return fits ? 0 : 1;
}

int Main(const std::string& what) {
  try {
    if (what == "parity") return Parity();
    if (what == "memory") return Memory();
    if (what == "speed") return Speed();
    std::fprintf(stderr, "usage: normlab-gpu-check parity | memory | speed\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "normlab-gpu-check: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace normlab::trainer

int main(int argc, char** argv) { return normlab::trainer::Main(argc == 2 ? argv[1] : ""); }
