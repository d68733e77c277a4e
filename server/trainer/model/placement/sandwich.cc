#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// Sandwich-LN (Ding et al. 2021), also Peri-LN (Kim et al. 2025): a norm before and after each
// branch, so that what is added has size 1 however large the weights are.
class Sandwich final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const Value a = b.Attention(b.Norm("attention_norm", x));
    const Value u = x + b.Branch(b.Norm("attention_output_norm", a));
    const Value m = b.FeedForward(b.Norm("mlp_norm", u));
    return u + b.Branch(b.Norm("mlp_output_norm", m));
  }
};

}  // namespace

const Placement& SandwichPlacement() {
  static const Sandwich placement;
  return placement;
}

}  // namespace normlab::trainer
