#include <cmath>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// Mix-LN (Li et al. 2024): the first floor(mix_fraction * layers) blocks are Post-Norm, the others
// Pre-Norm.
class Mix final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    const TrainingSettings& s = b.settings();
    // The small number keeps 0.29 * 100 from becoming 28.
    const double post_blocks = std::floor(s.mix_fraction * static_cast<double>(s.layers) + 1e-9);
    const bool post = static_cast<double>(b.index()) < post_blocks;
    return (post ? PostPlacement() : PrePlacement()).RecordBlock(b, x);
  }
};

}  // namespace

const Placement& MixPlacement() {
  static const Mix placement;
  return placement;
}

}  // namespace normlab::trainer
