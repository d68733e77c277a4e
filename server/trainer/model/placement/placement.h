// Where the norm goes: the residual wiring of one block.
//
// A placement is one file whose RecordBlock() reads like its formula. To add one: write the file,
// list it in placement.cc and CMakeLists.txt, and give it a test.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_PLACEMENT_PLACEMENT_H_
#define NORMLAB_SERVER_TRAINER_MODEL_PLACEMENT_PLACEMENT_H_

#include <span>
#include <string_view>
#include <vector>

#include "server/trainer/model/block.h"
#include "server/trainer/model/components/components.h"
#include "server/trainer/model/program.h"

namespace normlab::trainer {

class Placement {
 public:
  virtual ~Placement() = default;

  // x [rows, d] -> x' [rows, d].
  virtual Value RecordBlock(const Block& block, Value x) const = 0;

  // All blocks, one after the other. Overridden by placements that carry more than x from block to
  // block, or end in a norm of their own.
  virtual Value RecordStack(std::span<const Block> blocks, Value x) const;
};

// Throws std::runtime_error that lists the known names if `name` is none of them.
const Placement& FindPlacement(std::string_view name);

std::vector<std::string_view> PlacementNames();

// One function a file.
const Placement& PrePlacement();
const Placement& PostPlacement();
const Placement& PostSinglePlacement();
const Placement& SandwichPlacement();
const Placement& Olmo2Placement();
const Placement& NormFormerPlacement();
const Placement& DeepNormPlacement();
const Placement& AdminPlacement();
const Placement& ReZeroPlacement();
const Placement& LayerScalePlacement();
const Placement& BottomToTopPlacement();
const Placement& ResidualDualPlacement();
const Placement& MixPlacement();
const Placement& HybridPlacement();
const Placement& HybridStarPlacement();
const Placement& LayerNormScalingPlacement();
const Placement& NonePlacement();

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_PLACEMENT_PLACEMENT_H_
