#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <ranges>
#include <vector>

#include "tests/bench/products.h"
#include "tests/bench/weight_shapes.h"

namespace normlab::trainer {
namespace {

class TorchWeights final : public StepProducts {
 public:
  explicit TorchWeights(const TrainingSettings& settings) : flops_(WeightFlops(settings)) {
    const int64_t rows = settings.batch_size * settings.sequence_length;
    for (const auto& [in, out] : WeightShapes(settings)) {
      layers_.push_back({at::randn({rows, in}), at::randn({in, out}), at::empty({rows, out}),
                         at::randn({rows, out}), at::empty({rows, in}), at::zeros({in, out})});
    }
  }

  void Run() override {
    for (Layer& l : layers_) at::mm_out(l.y, l.x, l.w);
    for (Layer& l : layers_ | std::views::reverse) {
      at::mm_out(l.dx, l.dy, l.w.t());
      at::mm_out(l.dw, l.x.t(), l.dy);
    }
  }

  double Flops() const override { return flops_; }

 private:
  struct Layer {
    at::Tensor x, w, y, dy, dx, dw;
  };

  const double flops_;
  std::vector<Layer> layers_;
};

class TorchAttention final : public StepProducts {
 public:
  explicit TorchAttention(const TrainingSettings& s) {
    const int64_t heads = s.batch_size * s.heads;
    const int64_t time = s.sequence_length;
    const int64_t width = s.d_model / s.heads;
    const auto wide = [&] { return at::randn({heads, time, width}); };
    const auto square = [&] { return at::randn({heads, time, time}); };
    for (int64_t i = 0; i < s.layers; ++i) {
      layers_.push_back({wide(), wide(), wide(), wide(), wide(), wide(), wide(), wide(), square(),
                         square(), square()});
    }
    flops_ = static_cast<double>(s.layers * 6 * 2 * heads * time * time * width);
  }

  void Run() override {
    for (Layer& l : layers_) {
      at::bmm_out(l.scores, l.q, l.k.transpose(1, 2));
      at::bmm_out(l.y, l.p, l.v);
    }
    for (Layer& l : layers_ | std::views::reverse) {
      at::bmm_out(l.dp, l.dy, l.v.transpose(1, 2));
      at::bmm_out(l.dv, l.p.transpose(1, 2), l.dy);
      at::bmm_out(l.dq, l.dp, l.k);
      at::bmm_out(l.dk, l.dp.transpose(1, 2), l.q);
    }
  }

  double Flops() const override { return flops_; }

 private:
  struct Layer {
    at::Tensor q, k, v, y, dq, dk, dv, dy, scores, p, dp;
  };

  double flops_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<StepProducts> TorchWeightProducts(const TrainingSettings& settings) {
  return std::make_unique<TorchWeights>(settings);
}

std::unique_ptr<StepProducts> TorchAttentionProducts(const TrainingSettings& settings) {
  return std::make_unique<TorchAttention>(settings);
}

}  // namespace normlab::trainer
