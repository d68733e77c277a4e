#include <algorithm>
#include <ranges>
#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/matrix_product.h"
#include "server/trainer/train/threads.h"
#include "tests/bench/products.h"
#include "tests/bench/weight_shapes.h"

namespace normlab::trainer {
namespace {

// The products of one thread's share of the rows.
class Share {
 public:
  Share(const TrainingSettings& settings, int64_t rows, std::vector<Buffer>& weights) {
    const std::vector<WeightShape> shapes = WeightShapes(settings);
    for (size_t i = 0; i < shapes.size(); ++i) {
      const auto [in, out] = shapes[i];
      const float* x = New(rows * in);
      const float* dy = New(rows * out);
      const Matrix weight{weights[i].data(), in, out};
      forward_.emplace_back(Matrix{x, rows, in}, weight, ProductStart{}, New(rows * out),
                            BestKernels());
      backward_.emplace_back(Matrix{x, rows, in}.Transposed(), Matrix{dy, rows, out},
                             ProductStart{.accumulate = true}, New(in * out), BestKernels());
      backward_.emplace_back(Matrix{dy, rows, out}, weight.Transposed(), ProductStart{},
                             New(rows * in), BestKernels());
    }
  }

  void Run() {
    for (MatrixProduct& product : forward_) product.Run();
    for (MatrixProduct& product : backward_ | std::views::reverse) product.Run();
  }

 private:
  float* New(int64_t count) {
    buffers_.emplace_back(count);
    std::ranges::fill(buffers_.back().span(), 0.5f);
    return buffers_.back().data();
  }

  std::vector<Buffer> buffers_;
  std::vector<MatrixProduct> forward_;
  std::vector<MatrixProduct> backward_;
};

class EngineWeights final : public StepProducts {
 public:
  explicit EngineWeights(const TrainingSettings& settings) : flops_(WeightFlops(settings)) {
    for (const auto& [in, out] : WeightShapes(settings)) {
      weights_.emplace_back(in * out);
      std::ranges::fill(weights_.back().span(), 0.25f);
    }
    for (int64_t i = 0; i < settings.threads; ++i) {
      const int64_t begin = settings.batch_size * i / settings.threads;
      const int64_t end = settings.batch_size * (i + 1) / settings.threads;
      shares_.push_back(
          std::make_unique<Share>(settings, (end - begin) * settings.sequence_length, weights_));
    }
  }

  void Run() override {
    RunOnThreads(static_cast<int64_t>(shares_.size()),
                 [&](int64_t i) { shares_[static_cast<size_t>(i)]->Run(); });
  }

  double Flops() const override { return flops_; }

 private:
  const double flops_;
  std::vector<Buffer> weights_;
  std::vector<std::unique_ptr<Share>> shares_;
};

}  // namespace

std::unique_ptr<StepProducts> EngineWeightProducts(const TrainingSettings& settings) {
  return std::make_unique<EngineWeights>(settings);
}

}  // namespace normlab::trainer
