#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// Post-Norm (Vaswani et al. 2017): every sum is normalised, the identity path too.
class Post final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const Value u = b.Norm("attention_norm", x + b.Attention(x));
    return b.Norm("mlp_norm", u + b.FeedForward(u));
  }

  int64_t ExtraParameterCount(const TrainingSettings& settings) const override {
    return 2 * NormParameterCount(settings);
  }
};

}  // namespace

const Placement& PostPlacement() {
  static const Post placement;
  return placement;
}

}  // namespace normlab::trainer
