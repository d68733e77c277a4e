#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// B2T connection (Takase et al. 2022): Post-Norm in which the block's input also reaches its last
// norm, past the first one.
class BottomToTop final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const Value u = b.Norm("attention_norm", x + b.Branch(b.Attention(x)));
    return b.Norm("mlp_norm", x + u + b.Branch(b.FeedForward(u)));
  }
};

}  // namespace

const Placement& BottomToTopPlacement() {
  static const BottomToTop placement;
  return placement;
}

}  // namespace normlab::trainer
