// A vector that multiplies or is added to every row: a gain or a bias.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_ROW_VECTOR_H_
#define NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_ROW_VECTOR_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "server/trainer/model/program.h"

namespace normlab::trainer {

// A learned parameter [width] that starts at `initial`. Where it is not `learned`, a constant
// stands in for it and its gradient goes where nobody reads it, so that there is one kernel for
// both.
class RowVector {
 public:
  RowVector(ParameterTable& parameters, bool learned, std::string_view path, int64_t width,
            float initial)
      : width_(width), initial_(initial) {
    if (learned) id_ = parameters.Declare(path, {width}, Initializer::Constant(initial));
  }

  void Bind(Program& program) {
    if (id_) {
      values_ = program.Weights(*id_);
      gradient_ = program.WeightGradient(*id_);
      return;
    }
    std::vector<float> stand_in(static_cast<size_t>(2 * width_), initial_);
    stand_in_ = program.NewBuffer(stand_in);
    values_ = stand_in_.data();
    gradient_ = stand_in_.data() + width_;
  }

  int64_t width() const { return width_; }
  const float* values() const { return values_; }
  float* gradient() const { return gradient_; }

 private:
  int64_t width_;
  float initial_;
  std::optional<ParameterTable::Id> id_;
  Buffer stand_in_;
  const float* values_ = nullptr;
  float* gradient_ = nullptr;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_ROW_VECTOR_H_
