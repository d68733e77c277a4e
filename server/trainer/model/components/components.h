// The parts models are made of. Each function appends one component to the program of its input and
// returns the output; [rows, width] throughout, rows = batch * time. Parameters are declared under
// the given path.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_COMPONENTS_H_
#define NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_COMPONENTS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/trainer/model/parameters.h"
#include "server/trainer/model/program.h"

namespace normlab::trainer {

// What a stack starts from.
enum class Input {
  kTokens,   // Batch::tokens; parameter embedding/embedding [vocab, width], N(0, 1)
  kSource,   // Batch::source; parameter source_embedding/embedding
  kNumbers,  // Batch::inputs as they are
};

// What is added to tell positions apart.
enum class Positions {
  kNone,
  kLearned,     // parameter position (or source_position) [1, time, width] from zero
  kSinusoidal,  // fixed sines and cosines (Vaswani et al. 2017)
};

// The input's rows plus positions. `tied` says that the head is the embedding too.
Value Embed(Program& program, Input input, Positions positions, int64_t vocab, int64_t width,
            bool tied = false);

// The norms, each over rows. Without `gain` they have no gain and bias, and only normalise.
//
// g * (x - mean) / sqrt(variance + epsilon) + b (Ba et al. 2016); parameters PATH/scale and
// PATH/bias.
Value LayerNorm(std::string_view path, double epsilon, Value x, bool gain = true);

// g * x / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich 2019); parameter PATH/scale.
Value RmsNorm(std::string_view path, double epsilon, Value x, bool gain = true);

// g * tanh(alpha * x) + b with one alpha, first `alpha` (Zhu et al. 2025); parameters PATH/alpha,
// PATH/scale and PATH/bias.
Value DyT(std::string_view path, double alpha, Value x, bool gain = true);

// x W + b with W [in, out], drawn as its role says; parameters PATH/kernel and, if `bias`,
// PATH/bias. Done in the program's precision unless another is given.
Value Linear(std::string_view path, int64_t out, Role role, bool bias, Value x,
             std::optional<Precision> precision = std::nullopt);

// Rotary positions (Su et al. 2021): in q and k of qkv [rows, 3 width], columns 2i and 2i + 1 of
// every head are turned by the angle t / 10000^(2i / (width / heads)) at position t. v stays.
Value Rotate(int64_t heads, Value qkv);

// softmax(q k^T / sqrt(width / heads)) v for each head, then the heads side by side. qkv is [rows,
// 3 width]; a causal position sees itself and what is before it.
Value AttendHeads(int64_t heads, bool causal, Value qkv);

struct QueryKeyNormOptions {
  int64_t groups = 1;  // heads, or 1 for the full width
  bool values = false;
  bool gain = true;
  double epsilon = 1e-6;
};

// RMS norm of q and k, and of v if `values`, in qkv [rows, 3 width], over each of the groups
// (Dehghani et al. 2023). One gain of a group's width for all groups; parameters PATHq_norm/scale,
// PATHk_norm/scale and PATHv_norm/scale.
Value QueryKeyNorm(std::string_view path, const QueryKeyNormOptions& options, Value qkv);

// The mean of the positions that each position sees: attention that has no preference.
Value MeanOverVisible(bool causal, Value x);

// y = f(x): relu, gelu, gelu-tanh (its tanh approximation) or swiglu. swiglu halves the width: its
// input is [a, b] side by side and y = silu(a) * b (Shazeer 2020). Throws std::runtime_error for an
// unknown name.
Value Activate(std::string_view activation, Value x);
// How many columns the activation reads for each that it writes: 2 for swiglu, else 1. Throws as
// well.
int64_t ActivationInputs(std::string_view activation);

// tanh-approximated GELU.
Value Gelu(Value x);

// Sets elements to 0 with the given probability and multiplies the others with 1 / (1 -
// probability) (Srivastava et al. 2014), while Program::training(). Which ones follows from the
// seed, Program::moment(), the number of the component and the element's place in the whole batch:
// neither the number of threads nor a resume changes it. Records nothing for probability 0.
Value Dropout(double probability, int64_t seed, Value x);

Value operator+(Value a, Value b);

// A constant times x.
Value operator*(double factor, Value x);

// x times learned scales PATH [groups], each for width / groups columns side by side: groups = 1 is
// one scalar, groups = width a vector.
Value LearnedScale(std::string_view path, int64_t groups, double initial, Value x);

// The output head that is the embedding [vocab, d] transposed: x E^T.
Value TiedHead(ParameterTable::Id embedding, Value x);

// Cross-entropy of the rows against Program::targets(), kIgnored left out, summed and multiplied
// with Program::loss_scale(); ends the program.
void SoftmaxCrossEntropy(Value logits);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_COMPONENTS_H_
