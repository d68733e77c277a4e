#include "server/trainer/model/components/components.h"
#include "server/trainer/model/deepnorm_constants.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// DeepNorm (Wang et al. 2022): Post-Norm whose identity path outweighs the branch by alpha. The
// other half of the method is its initialisation, init = deepnorm.
class DeepNorm final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const double alpha = DeepNormOfStack(b.settings().layers).alpha;
    const Value u = b.Norm("attention_norm", alpha * x + b.Branch(b.Attention(x)));
    return b.Norm("mlp_norm", alpha * u + b.Branch(b.FeedForward(u)));
  }
};

}  // namespace

const Placement& DeepNormPlacement() {
  static const DeepNorm placement;
  return placement;
}

}  // namespace normlab::trainer
