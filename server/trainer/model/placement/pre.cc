#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// Pre-Norm (Xiong et al. 2020): the identity path is never normalised.
class Pre final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    Value u = x + b.Branch(b.Attention(b.Norm("attention_norm", b.WithMemory(x))));
    if (b.part() == Part::kDecoder) {
      u = u + b.Branch(b.CrossAttention(b.Norm("cross_attention_norm", u)));
    }
    return u + b.Branch(b.FeedForward(b.Norm("mlp_norm", u)));
  }
};

}  // namespace

const Placement& PrePlacement() {
  static const Pre placement;
  return placement;
}

}  // namespace normlab::trainer
