#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// Admin (Liu et al. 2020): Post-Norm with a learned vector omega on the identity path. With init =
// admin, ProfileAdmin() finds its first values.
class Admin final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const Value u = b.Norm("attention_norm", b.ScaledSum("attention_omega", x, b.Attention(x)));
    return b.Norm("mlp_norm", b.ScaledSum("mlp_omega", u, b.FeedForward(u)));
  }
};

}  // namespace

const Placement& AdminPlacement() {
  static const Admin placement;
  return placement;
}

}  // namespace normlab::trainer
