#include <string_view>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// LayerScale (Touvron et al. 2021): Pre-Norm with a learned, small factor on each channel of each
// branch.
class LayerScale final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const auto lambda = [&](std::string_view name, Value branch) {
      return LearnedScale(b.Path(name), branch.width(), b.settings().layerscale_init, branch);
    };
    const Value a = b.Attention(b.Norm("attention_norm", x));
    const Value u = x + b.Branch(lambda("attention_lambda", a));
    const Value m = b.FeedForward(b.Norm("mlp_norm", u));
    return u + b.Branch(lambda("mlp_lambda", m));
  }
};

}  // namespace

const Placement& LayerScalePlacement() {
  static const LayerScale placement;
  return placement;
}

}  // namespace normlab::trainer
