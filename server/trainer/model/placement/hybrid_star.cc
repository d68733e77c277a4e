#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// HybridNorm* (Zhuo et al. 2025): HybridNorm with a Pre-Norm first block.
class HybridStar final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    return (b.index() == 0 ? PrePlacement() : HybridPlacement()).RecordBlock(b, x);
  }
};

}  // namespace

const Placement& HybridStarPlacement() {
  static const HybridStar placement;
  return placement;
}

}  // namespace normlab::trainer
