// A whole training step against its matrix products, on one thread and on two.
//
//   step_bench --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
//
// deploy/bench.sh runs it and turns the medians into ratios.
#include <benchmark/benchmark.h>

#include <vector>

#include "server/trainer/train/data.h"
#include "server/trainer/train/diagnostics.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/train/threads.h"
#include "tests/bench/products.h"

namespace normlab::trainer {
namespace {

TrainingSettings Article(int64_t threads) {
  TrainingSettings settings;
  settings.threads = threads;
  return settings;
}

// One that is too large for the cache, where the products take nearly all of the time.
TrainingSettings Large(int64_t threads) {
  TrainingSettings settings;
  settings.layers = 8;
  settings.d_model = 512;
  settings.heads = 8;
  settings.ffn_width = 2048;
  settings.vocab_size = 256;
  settings.sequence_length = 256;
  settings.batch_size = 8;
  settings.threads = threads;
  return settings;
}

using MakeSettings = TrainingSettings (*)(int64_t threads);

void Step(benchmark::State& state, MakeSettings make) {
  TrainingSettings settings = make(state.range(0));
  settings.diagnose_every = state.range(1);
  SetThreads(settings.threads);
  Learner learner(settings);
  Diagnostics diagnostics(settings, learner);
  const auto data = MakeDataSource(settings);
  std::vector<Batch> batches(1);
  int64_t step = 0;
  const auto take_step = [&] {
    ++step;
    data->Next(batches[0]);
    benchmark::DoNotOptimize(learner.ComputeGradients(step, batches));
    benchmark::DoNotOptimize(learner.GradientNorm());
    if (diagnostics.Due(step)) diagnostics.BeforeUpdate();
    learner.Update(step, 1e-4);
    if (diagnostics.Due(step)) benchmark::DoNotOptimize(diagnostics.AfterUpdate().data());
  };
  take_step();
  for (auto _ : state) take_step();
}

void Run(benchmark::State& state, MakeSettings make,
         std::unique_ptr<StepProducts> (*products)(const TrainingSettings&)) {
  const TrainingSettings settings = make(state.range(0));
  SetThreads(settings.threads);
  const std::unique_ptr<StepProducts> work = products(settings);
  work->Run();
  for (auto _ : state) work->Run();
  state.counters["GFLOP/s"] =
      benchmark::Counter(work->Flops() / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

void Register(const std::string& model, MakeSettings make, int iterations) {
  for (const int64_t threads : {1, 2}) {
    const auto set_up = [&](benchmark::internal::Benchmark* benchmark) {
      benchmark->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(iterations);
      return benchmark;
    };
    const auto name = [&](const char* what) { return model + "/" + what; };
    set_up(benchmark::RegisterBenchmark(name("step").c_str(), Step, make))->Args({threads, 0});
    set_up(benchmark::RegisterBenchmark(name("step_diagnosed").c_str(), Step, make))
        ->Args({threads, 10});
    set_up(benchmark::RegisterBenchmark(name("weights_engine").c_str(), Run, make,
                                        EngineWeightProducts))
        ->Args({threads});
    set_up(
        benchmark::RegisterBenchmark(name("weights_torch").c_str(), Run, make, TorchWeightProducts))
        ->Args({threads});
    set_up(benchmark::RegisterBenchmark(name("attention_torch").c_str(), Run, make,
                                        TorchAttentionProducts))
        ->Args({threads});
  }
}

}  // namespace
}  // namespace normlab::trainer

int main(int argc, char** argv) {
  normlab::trainer::Register("article", normlab::trainer::Article, 40);
  normlab::trainer::Register("large", normlab::trainer::Large, 2);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
