// The parameters of one model: names, shapes and initial values, laid out in one flat buffer.
//
// The optimiser, the gradient norm and a checkpoint see one array; a component sees its own tensor
// by offset.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_PARAMETERS_H_
#define NORMLAB_SERVER_TRAINER_MODEL_PARAMETERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::trainer {

// What a parameter is for. The run's `init` maps it to a distribution (initialization.h); kernels
// are [..., in, out].
enum class Role {
  kConstant,       // norms, scales: one value everywhere
  kEmbedding,      // [vocab, d]
  kTiedEmbedding,  // the same, when it is the output head as well
  kPositions,      // learned positions
  kHead,           // [d, vocab]
  kQuery,          // makes queries or keys
  kQueryKeyValue,  // three matrices side by side
  kKeyValue,       // two
  kInput,          // makes values, or is the first layer of a feed-forward branch
  kGatedInput,     // two of those side by side
  kOutput,         // ends a branch: W_O, W_2
  kBias,           // of a linear layer
};

// How a parameter is filled before the first step.
struct Initializer {
  Role role = Role::kConstant;
  float value = 0;     // of a constant
  int64_t fan_in = 0;  // of a bias: inputs of its layer

  Initializer() = default;
  Initializer(Role role) : role(role) {}  // NOLINT: a role says it all for most parameters
  static Initializer Constant(float value) {
    Initializer init;
    init.value = value;
    return init;
  }
  static Initializer Bias(int64_t fan_in) {
    Initializer init = Role::kBias;
    init.fan_in = fan_in;
    return init;
  }
};

struct Parameter {
  std::string path;  // "block_0/qkv/kernel"; the last part is the parameter, the others its modules
  std::vector<int64_t> shape;
  Initializer init;
  int64_t offset = 0;  // in floats; a multiple of 16, so that every tensor starts a cache line
  int64_t count = 0;
};

class ParameterTable {
 public:
  using Id = int;

  // Adds a parameter, or finds the one of that path (a model is recorded once a thread).
  Id Declare(std::string_view path, std::vector<int64_t> shape, Initializer init);

  // The parameter of that path. Throws std::runtime_error if there is none.
  Id Find(std::string_view path) const;

  const Parameter& operator[](Id id) const { return parameters_[static_cast<size_t>(id)]; }
  const std::vector<Parameter>& all() const { return parameters_; }

  int64_t buffer_size() const { return buffer_size_; }  // floats, with the gaps between tensors
  int64_t parameter_count() const;                      // without them

 private:
  std::vector<Parameter> parameters_;
  std::map<std::string, Id, std::less<>> ids_;
  int64_t buffer_size_ = 0;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_PARAMETERS_H_
