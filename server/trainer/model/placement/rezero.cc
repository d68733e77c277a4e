#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// ReZero (Bachlechner et al. 2020): no norms; both branches of a block have one learned factor,
// which starts at 0, so that the block starts as the identity.
class ReZero final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const auto a = [&](Value branch) { return LearnedScale(b.Path("rezero_scale"), 1, 0, branch); };
    const Value u = x + b.Branch(a(b.Attention(x)));
    return u + b.Branch(a(b.FeedForward(u)));
  }
};

}  // namespace

const Placement& ReZeroPlacement() {
  static const ReZero placement;
  return placement;
}

}  // namespace normlab::trainer
