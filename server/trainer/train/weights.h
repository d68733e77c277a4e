// Weights by name from a safetensors file.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_WEIGHTS_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_WEIGHTS_H_

#include <span>
#include <string>
#include <vector>

#include "server/trainer/model/parameters.h"
#include "server/trainer/train/safetensors.h"

namespace normlab::trainer {

// Every tensor of a checkpoint that is no weight has a name that begins with this.
inline constexpr std::string_view kStatePrefix = "normlab/";

// Replaces the weights by those of the file, matched by parameter path; F32, F64, F16 and BF16 are
// converted. What the file has beyond them (also the training state of a checkpoint) is ignored.
// Throws std::runtime_error if a shape differs, or, unless `allow_missing`, if weights are missing,
// with the list of their names; nothing is changed then. A Post-Norm checkpoint lacks norms that
// Pre-Norm has, so this is how it is refused: the two are not one model renamed.
void LoadWeights(const std::string& path, bool allow_missing, const ParameterTable& parameters,
                 std::span<float> weights);

// Throws std::runtime_error if the file has `name` in another shape or not at all.
void CheckShape(const SafetensorsFile& file, const std::string& name,
                const std::vector<int64_t>& shape);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_WEIGHTS_H_
