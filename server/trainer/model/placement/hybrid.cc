#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// HybridNorm (Zhuo et al. 2025): no norm before the attention, which instead norms queries, keys
// and values (qk_norm = rms-head); the feed-forward layer is Post-Norm with the norm before its
// branch.
class Hybrid final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const Value y = x + b.Branch(b.Attention(x));
    const Value n = b.Norm("mlp_norm", y);
    return n + b.Branch(b.FeedForward(n));
  }
};

}  // namespace

const Placement& HybridPlacement() {
  static const Hybrid placement;
  return placement;
}

}  // namespace normlab::trainer
