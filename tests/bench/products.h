// The matrix products of one training step and nothing else: the bound that a whole step is
// measured against. Plain C++ on the outside.
//
// Weight products go in the order of the model, forward, then back with dX and dW, each over
// buffers of its own, so that the cache is as cold as in training. Attention products are the six
// of every head (q k^T, p v and their four derivatives) over the full square, as a batched product
// does them.
#ifndef NORMLAB_TESTS_BENCH_PRODUCTS_H_
#define NORMLAB_TESTS_BENCH_PRODUCTS_H_

#include <cstdint>
#include <memory>

#include "server/trainer/trainer.h"

namespace normlab::trainer {

class StepProducts {
 public:
  virtual ~StepProducts() = default;
  virtual void Run() = 0;
  // Floating-point operations of one Run, multiply and add counted as two.
  virtual double Flops() const = 0;
};

// By LibTorch: at::mm_out and at::addmm_out, on the threads of SetThreads.
std::unique_ptr<StepProducts> TorchWeightProducts(const TrainingSettings& settings);
// By LibTorch: at::bmm_out.
std::unique_ptr<StepProducts> TorchAttentionProducts(const TrainingSettings& settings);
// By what the engine uses, which is its own kernel for small products; the rows are divided between
// the threads as the engine divides the batch.
std::unique_ptr<StepProducts> EngineWeightProducts(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_BENCH_PRODUCTS_H_
