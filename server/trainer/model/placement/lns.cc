#include <cmath>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// LayerNorm Scaling (Sun et al. 2025): Pre-Norm whose norms are damped by 1 / sqrt(l), l the number
// of the block from 1, so that the stream's variance grows less with depth.
class LayerNormScaling final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const double damping = 1 / std::sqrt(static_cast<double>(b.index() + 1));
    const Value u = x + b.Branch(b.Attention(damping * b.Norm("attention_norm", x)));
    return u + b.Branch(b.FeedForward(damping * b.Norm("mlp_norm", u)));
  }
};

}  // namespace

const Placement& LayerNormScalingPlacement() {
  static const LayerNormScaling placement;
  return placement;
}

}  // namespace normlab::trainer
