#include "server/trainer/model/components/components.h"
#include "server/trainer/model/deepnorm_constants.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

double Alpha(const Block& b) {
  const TrainingSettings& s = b.settings();
  switch (b.part()) {
    case Part::kEncoder:
      return DeepNormOfEncoder(s.layers, s.decoder_layers).alpha;
    case Part::kDecoder:
      return DeepNormOfDecoder(s.decoder_layers).alpha;
    case Part::kOnly:
      break;
  }
  return DeepNormOfStack(s.layers).alpha;
}

// DeepNorm (Wang et al. 2022): Post-Norm whose identity path outweighs the branch by alpha. The
// other half of the method is its initialisation, init = deepnorm.
class DeepNorm final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const double alpha = Alpha(b);
    Value u = b.Norm("attention_norm", alpha * x + b.Branch(b.Attention(x)));
    if (b.part() == Part::kDecoder) {
      u = b.Norm("cross_attention_norm", alpha * u + b.Branch(b.CrossAttention(u)));
    }
    return b.Norm("mlp_norm", alpha * u + b.Branch(b.FeedForward(u)));
  }
};

}  // namespace

const Placement& DeepNormPlacement() {
  static const DeepNorm placement;
  return placement;
}

}  // namespace normlab::trainer
