// Where the norm goes: the residual wiring of one block.
//
// A placement is one file whose Block() reads like its formula. To add one: write the file, list it
// in placement.cc and CMakeLists.txt, and give it a test.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_PLACEMENT_PLACEMENT_H_
#define NORMLAB_SERVER_TRAINER_MODEL_PLACEMENT_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/model/program.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// What a placement wires together: the sublayers of block `index()` and norms named after their
// role. Each call records a part with its own parameters under "block_N/".
class Block {
 public:
  Block(const TrainingSettings& settings, int64_t index) : settings_(settings), index_(index) {}

  int64_t index() const { return index_; }  // from 0
  const TrainingSettings& settings() const { return settings_; }

  // A: fused q, k, v with bias, heads, output projection with bias.
  Value Attention(Value x) const;
  // M: d -> ffn_width, activation, -> d, both with bias.
  Value FeedForward(Value x) const;
  // N: the run's norm.
  Value Norm(std::string_view name, Value x) const;

 private:
  std::string Path(std::string_view name) const;

  const TrainingSettings& settings_;
  const int64_t index_;
};

// The run's norm under any path, for norms outside blocks.
Value RecordNorm(const TrainingSettings& settings, std::string_view path, Value x);

// Parameters of one norm of the run.
int64_t NormParameterCount(const TrainingSettings& settings);

class Placement {
 public:
  virtual ~Placement() = default;

  // x [rows, d] -> x' [rows, d].
  virtual Value RecordBlock(const Block& block, Value x) const = 0;

  // Parameters of a block beyond those of its two sublayers.
  virtual int64_t ExtraParameterCount(const TrainingSettings& settings) const = 0;
};

// Throws std::runtime_error that lists the known names if `name` is none of them.
const Placement& FindPlacement(std::string_view name);

std::vector<std::string_view> PlacementNames();

// One function a file.
const Placement& PrePlacement();
const Placement& PostPlacement();

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_PLACEMENT_PLACEMENT_H_
