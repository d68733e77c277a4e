#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// One norm a block: only the sum of the whole block is normalised, not the one after the attention.
class PostSingle final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const Value u = x + b.Branch(b.Attention(x));
    return b.Norm("norm", u + b.Branch(b.FeedForward(u)));
  }
};

}  // namespace

const Placement& PostSinglePlacement() {
  static const PostSingle placement;
  return placement;
}

}  // namespace normlab::trainer
