#include "server/trainer/model/placement/placement.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace normlab::trainer {
namespace {

using Entry = std::pair<std::string_view, const Placement& (*)()>;

constexpr std::array kPlacements = {
    Entry{"pre", PrePlacement},
    Entry{"post", PostPlacement},
    Entry{"post-single", PostSinglePlacement},
    Entry{"sandwich", SandwichPlacement},
    Entry{"olmo2", Olmo2Placement},
    Entry{"normformer", NormFormerPlacement},
    Entry{"deepnorm", DeepNormPlacement},
    Entry{"admin", AdminPlacement},
    Entry{"rezero", ReZeroPlacement},
    Entry{"layerscale", LayerScalePlacement},
    Entry{"b2t", BottomToTopPlacement},
    Entry{"residual-dual", ResidualDualPlacement},
    Entry{"mix", MixPlacement},
    Entry{"hybrid", HybridPlacement},
    Entry{"hybrid-star", HybridStarPlacement},
    Entry{"lns", LayerNormScalingPlacement},
    Entry{"none", NonePlacement},
};

}  // namespace

const Placement& FindPlacement(std::string_view name) {
  std::string known;
  for (const auto& [key, placement] : kPlacements) {
    if (key == name) return placement();
    known += (known.empty() ? "" : ", ") + std::string(key);
  }
  throw std::runtime_error("unknown placement \"" + std::string(name) + "\"; known are " + known);
}

std::vector<std::string_view> PlacementNames() {
  std::vector<std::string_view> names;
  for (const auto& entry : kPlacements) names.push_back(entry.first);
  return names;
}

Value Placement::RecordStack(std::span<const Block> blocks, Value x) const {
  for (const Block& block : blocks) {
    const Value input = x;
    x = RecordBlock(block, x);
    block.Tap(input, x);
  }
  return x;
}

}  // namespace normlab::trainer
