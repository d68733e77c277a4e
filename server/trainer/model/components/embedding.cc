#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// Position t: sin and cos of t / 10000^(2i / width) in columns 2i and 2i + 1.
std::vector<float> Sinusoids(int64_t time, int64_t width) {
  std::vector<float> table(static_cast<size_t>(time * width));
  for (int64_t t = 0; t < time; ++t) {
    for (int64_t c = 0; c < width; ++c) {
      const double exponent = static_cast<double>(c / 2 * 2) / static_cast<double>(width);
      const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
      table[static_cast<size_t>(t * width + c)] =
          static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

// y[b, t] = input[b, t] + position[t], where the input is the table's row of the token, or numbers
// of the batch, and either kind of position may be missing.
class EmbeddingComponent final : public Component {
 public:
  EmbeddingComponent(Input input, std::optional<ParameterTable::Id> table,
                     std::optional<ParameterTable::Id> learned_positions,
                     std::vector<float> fixed_positions, Value y)
      : input_(input),
        table_(table),
        learned_positions_(learned_positions),
        fixed_positions_(std::move(fixed_positions)),
        y_(y),
        width_(y.width()) {}

  void Bind(Program& program) override {
    program_ = &program;
    y_data_ = program.Data(y_);
    y_gradient_ = program.GradientOf(y_);
    if (!fixed_positions_.empty()) fixed_buffer_ = program.NewBuffer(fixed_positions_);
  }

  void Forward() override {
    const float* rows = table_ ? program_->Weights(*table_) : program_->step_inputs().numbers;
    const float* positions =
        learned_positions_ ? program_->Weights(*learned_positions_) : fixed_buffer_.data();
    program_->kernels().embed_forward(rows, Tokens(), positions, program_->rows(), program_->time(),
                                      width_, y_data_);
  }

  void Backward() override {
    program_->kernels().embed_backward(y_gradient_, Tokens(), program_->rows(), program_->time(),
                                       width_, GradientOf(table_), GradientOf(learned_positions_));
  }

 private:
  // Null where the input is numbers.
  const int32_t* Tokens() const {
    if (!table_) return nullptr;
    const StepInputs inputs = program_->step_inputs();
    return input_ == Input::kSource ? inputs.source : inputs.tokens;
  }

  float* GradientOf(std::optional<ParameterTable::Id> id) const {
    return id ? program_->WeightGradient(*id) : nullptr;
  }

  const Input input_;
  const std::optional<ParameterTable::Id> table_;
  const std::optional<ParameterTable::Id> learned_positions_;
  const std::vector<float> fixed_positions_;
  Buffer fixed_buffer_;  // the same for the kernels; none if empty
  const Value y_;
  const int64_t width_;
  Program* program_ = nullptr;
  float* y_data_ = nullptr;
  const float* y_gradient_ = nullptr;
};

}  // namespace

Value Embed(Program& program, Input input, Positions positions, int64_t vocab, int64_t width,
            bool tied) {
  ParameterTable& parameters = program.parameters();
  const std::string prefix = input == Input::kSource ? "source_" : "";
  std::optional<ParameterTable::Id> table;
  if (input != Input::kNumbers) {
    table = parameters.Declare(prefix + "embedding/embedding", {vocab, width},
                               tied ? Role::kTiedEmbedding : Role::kEmbedding);
  }
  std::optional<ParameterTable::Id> learned;
  std::vector<float> fixed;
  if (positions == Positions::kLearned) {
    learned = parameters.Declare(prefix + "position", {1, program.time(), width}, Role::kPositions);
  } else if (positions == Positions::kSinusoidal) {
    fixed = Sinusoids(program.time(), width);
  }
  const Value y = program.NewValue(width);
  Record<EmbeddingComponent>(program, input, table, learned, std::move(fixed), y);
  return y;
}

}  // namespace normlab::trainer
