#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// No norm in the blocks: the control.
class None final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const Value u = x + b.Branch(b.Attention(x));
    return u + b.Branch(b.FeedForward(u));
  }
};

}  // namespace

const Placement& NonePlacement() {
  static const None placement;
  return placement;
}

}  // namespace normlab::trainer
