#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// NormFormer (Shleifer et al. 2021): Pre-Norm with a learned scale on each head before the output
// projection, a norm after it, and a norm inside the feed-forward layer.
class NormFormer final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const Value heads = b.ScaleHeads("head_scale", b.Heads(b.Norm("attention_norm", x)));
    const Value u = x + b.Branch(b.Norm("attention_output_norm", b.AttentionOutput(heads)));
    const Value hidden = b.Norm("mlp_hidden_norm", b.Hidden(b.Norm("mlp_norm", u)));
    return u + b.Branch(b.FeedForwardOutput(hidden));
  }
};

}  // namespace

const Placement& NormFormerPlacement() {
  static const NormFormer placement;
  return placement;
}

}  // namespace normlab::trainer
