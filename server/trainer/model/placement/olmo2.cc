#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// OLMo 2 (Team OLMo 2024): branches are normalised after, not before, and the identity path never.
// Its queries and keys are normed over their full width (qk_norm = rms-full).
class Olmo2 final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const Value u = x + b.Branch(b.Norm("attention_norm", b.Attention(x)));
    return u + b.Branch(b.Norm("mlp_norm", b.FeedForward(u)));
  }
};

}  // namespace

const Placement& Olmo2Placement() {
  static const Olmo2 placement;
  return placement;
}

}  // namespace normlab::trainer
