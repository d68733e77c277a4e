#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// Post-Norm (Vaswani et al. 2017): every sum is normalised, the identity path too.
class Post final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    Value u = b.Norm("attention_norm", x + b.Branch(b.Attention(x)));
    if (b.part() == Part::kDecoder) {
      u = b.Norm("cross_attention_norm", u + b.Branch(b.CrossAttention(u)));
    }
    return b.Norm("mlp_norm", u + b.Branch(b.FeedForward(u)));
  }
};

}  // namespace

const Placement& PostPlacement() {
  static const Post placement;
  return placement;
}

}  // namespace normlab::trainer
