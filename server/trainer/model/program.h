// A model as a fixed list of components, recorded once and run every step.
//
// Recording looks like the mathematics: `x + block.Attention(block.Norm("n", x))` appends a norm,
// the parts of the attention and an addition. Afterwards the shapes are known, so Finish() lays out
// all memory, and a step allocates nothing and searches nothing. The way back is the list in
// reverse; each component knows its own derivative (there is no automatic differentiation), and
// where several components read one value their gradients are added.
//
//   Program program(parameters, batch, time);
//   Value x = Embed(program, ...);
//   x = x + Linear(program, "mlp", width, x);
//   Value logits = ...;
//   SoftmaxCrossEntropy(logits);
//   program.Finish(weights, gradients);
//   program.Forward();   // loss() is set
//   program.Backward();  // gradients are added to
//
// A program belongs to one thread. Several may share weights while none of them is written.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_PROGRAM_H_
#define NORMLAB_SERVER_TRAINER_MODEL_PROGRAM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "server/trainer/model/batch.h"
#include "server/trainer/model/buffer.h"
#include "server/trainer/model/device.h"
#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/parameters.h"

namespace normlab::trainer {

class Program;

// Activations [rows, width] that one component writes and others read.
struct Value {
  Program* program = nullptr;
  int index = -1;

  int64_t width() const;
  int64_t rows() const;  // Program::rows(), unless it was made with another number
};

// Where training stands; what is random in a step (dropout) is drawn from these numbers alone.
struct Moment {
  int64_t step = 0;   // from 1
  int64_t batch = 0;  // of the step, from 0
};

// Where a component puts the gradient of one of its inputs. In the way back the first to reach a
// value overwrites, the others add.
struct GradientSlot {
  float* data = nullptr;
  bool accumulate = false;
};

// One step of the computation with its derivative.
class Component {
 public:
  virtual ~Component() = default;

  // Called once by Finish(), the last component first: fetch pointers by Data() for inputs and
  // outputs, GradientOf() for outputs and AddGradient() for inputs.
  virtual void Bind(Program& program) = 0;
  virtual void Forward() = 0;
  virtual void Backward() = 0;
};

// Where kernels find what is new in each step.
struct StepInputs {
  const int32_t* tokens = nullptr;
  const int32_t* targets = nullptr;
  const int32_t* source = nullptr;
  const float* numbers = nullptr;     // Batch::inputs
  const float* loss_scale = nullptr;  // Program::loss_scale()
  const uint32_t* moment = nullptr;   // as RandomStream wants it
  double* loss_sum = nullptr;         // to be written: the sum of the rows' losses
};

// Program::moment() in the words of RandomStream::moment.
std::array<uint32_t, 2> MomentWords(const Moment& moment);

// In which numbers matrix products are done.
enum class Precision {
  kFp32,
  // As PyTorch's autocast: what goes into a product is rounded to bfloat16, sums are fp32, and the
  // result is rounded. Gradients of weights, norms, softmax, loss, the stream and what the
  // optimiser sees stay fp32.
  kBf16,
};

class Program {
 public:
  // `kernels` is for tests; everything else takes the best.
  Program(ParameterTable& parameters, int64_t batch, int64_t time,
          const Kernels& kernels = BestKernels());
  // A program on a device, which outlives it: all its memory is there, and so are the weights and
  // gradients that Finish() gets. Before Forward() it needs set_device_inputs() instead of
  // inputs(), set_loss_scale() and set_moment(); loss() stays where loss_sum points to.
  Program(ParameterTable& parameters, int64_t batch, int64_t time, Device& device);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int64_t batch() const { return batch_; }
  int64_t time() const { return time_; }
  int64_t rows() const { return batch_ * time_; }
  const Kernels& kernels() const { return kernels_; }
  ParameterTable& parameters() { return parameters_; }
  Device* device() const { return device_; }  // null: the host

  // To be set before recording.
  Precision precision() const { return precision_; }
  void set_precision(Precision precision) { precision_ = precision; }
  // Rounds operands and results of products in place; does nothing in fp32.
  void RoundProduct(float* x, int64_t count) const {
    if (precision_ == Precision::kBf16) kernels_.round_to_bfloat16(x, count, x);
  }

  // Recording. A value has rows() rows unless `rows` says otherwise.
  Value NewValue(int64_t width) { return NewValue(rows(), width); }
  Value NewValue(int64_t rows, int64_t width);
  void Append(std::unique_ptr<Component> component);

  // Ends recording. Both buffers hold parameters().buffer_size() floats and outlive the program.
  void Finish(const float* weights, float* gradients);

  // While binding. The gradient of a value is dead, and its memory reused, once the component that
  // made the value has gone back.
  float* Data(Value value);
  const float* GradientOf(Value value);
  GradientSlot AddGradient(Value value);
  const float* Weights(ParameterTable::Id id) const;
  float* WeightGradient(ParameterTable::Id id) const;

  // Memory of a component, where the kernels can use it: zeros, or these values.
  Buffer NewBuffer(int64_t count) const { return Buffer(count, device_); }
  Buffer NewBuffer(std::span<const float> values) const;

  // What kernels read in this Forward or Backward.
  StepInputs step_inputs();
  void set_device_inputs(const StepInputs& inputs) { device_inputs_ = inputs; }

  // The program's part of the next batch: rows [first_sequence, first_sequence + batch) of it.
  Batch& inputs() { return inputs_; }
  const Batch& inputs() const { return inputs_; }
  std::vector<int32_t>& tokens() { return inputs_.tokens; }
  std::vector<int32_t>& targets() { return inputs_.targets; }
  int64_t first_sequence() const { return first_sequence_; }
  void set_first_sequence(int64_t sequence) { first_sequence_ = sequence; }

  // What each counted row of the loss is multiplied with: 1 / (rows that count in the whole step).
  double loss_scale() const { return loss_scale_; }
  void set_loss_scale(double scale) {
    loss_scale_ = scale;
    loss_scale_float_ = static_cast<float>(scale);
  }

  const Moment& moment() const { return moment_; }
  void set_moment(const Moment& moment) {
    moment_ = moment;
    moment_words_ = MomentWords(moment);
  }

  // Off, dropout does nothing and nothing is remembered: validation and probes.
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }

  // Memory that outlives a step and belongs into a checkpoint (Transformer-XL's). Declared while
  // recording, zero at first.
  int NewState(int64_t count);
  std::span<float> State(int index);
  int state_count() const { return static_cast<int>(states_.size()); }

  // The number of the next component that draws random numbers, in the order of recording and so
  // the same in the program of every thread.
  int NewRandomStream() { return random_streams_++; }

  void Forward();
  // Forward in pieces: from component `first` through the one that makes `last`. Returns where the
  // next piece begins.
  int ForwardThrough(int first, Value last);
  // Adds to the weight gradients.
  void Backward();

  // Sum of the rows' losses times loss_scale(), without auxiliary losses.
  double loss() const { return loss_sum_ * loss_scale_; }

  // Sum over the layers of what balances the experts of Switch layers, without its coefficient, and
  // scaled as the loss is; 0 without such layers.
  double balance_loss() const { return balance_loss_; }
  void AddBalanceLoss(double loss) { balance_loss_ += loss; }

 private:
  struct ValueState {
    int64_t rows = 0;
    int64_t width = 0;
    int64_t offset = 0;          // in activations_
    int maker = -1;              // index of the component that writes it
    int64_t gradient_slot = -1;  // index into gradient_slots_ while alive
  };
  // Memory for a gradient, reused when its value's gradient is dead.
  struct Slot {
    int64_t count = 0;  // floats
    bool taken = false;
    Buffer buffer;
  };

  int64_t TakeSlot(int64_t count);
  ValueState& StateOf(Value value) { return values_[static_cast<size_t>(value.index)]; }
  friend struct Value;

  ParameterTable& parameters_;
  const int64_t batch_;
  const int64_t time_;
  const Kernels& kernels_;
  Device* const device_;
  std::vector<ValueState> values_;
  std::vector<std::unique_ptr<Component>> components_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Buffer activations_;
  int64_t activation_size_ = 0;
  const float* weights_ = nullptr;
  float* weight_gradients_ = nullptr;
  Batch inputs_;
  int64_t first_sequence_ = 0;
  Moment moment_;
  std::array<uint32_t, 2> moment_words_ = {0, 0};
  bool training_ = true;
  Precision precision_ = Precision::kFp32;
  std::vector<Buffer> states_;
  int random_streams_ = 0;
  double loss_scale_ = 1;
  float loss_scale_float_ = 1;
  double loss_sum_ = 0;
  double balance_loss_ = 0;
  StepInputs device_inputs_;
};

// Appends a component to the program.
template <typename C, typename... Arguments>
void Record(Program& program, Arguments&&... arguments) {
  program.Append(std::make_unique<C>(std::forward<Arguments>(arguments)...));
}

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_PROGRAM_H_
