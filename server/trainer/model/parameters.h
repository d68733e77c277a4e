// The parameters of one model: names, shapes and initial values, laid out in one flat buffer.
//
// The optimiser, the gradient norm and a checkpoint see one array; a component sees its own tensor
// by offset.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_PARAMETERS_H_
#define NORMLAB_SERVER_TRAINER_MODEL_PARAMETERS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::trainer {

// How a parameter is filled before the first step.
struct Initializer {
  enum class Kind { kConstant, kNormal, kTruncatedNormal };
  Kind kind = Kind::kConstant;
  float value = 0;  // the constant, or the scale of the normal

  static Initializer Constant(float value) { return {Kind::kConstant, value}; }
  static Initializer Normal(float scale) { return {Kind::kNormal, scale}; }
  // Variance 1 / fan_in, truncated at two standard deviations (LeCun et al. 1998).
  static Initializer Lecun(int64_t fan_in);
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

  const Parameter& operator[](Id id) const { return parameters_[static_cast<size_t>(id)]; }
  const std::vector<Parameter>& all() const { return parameters_; }

  int64_t buffer_size() const { return buffer_size_; }  // floats, with the gaps between tensors
  int64_t parameter_count() const;                      // without them

  // Fills a buffer of buffer_size() floats with the initial weights of `seed`, exactly those of
  // Flax.
  void Initialize(int64_t seed, std::span<float> buffer) const;

 private:
  std::vector<Parameter> parameters_;
  std::map<std::string, Id, std::less<>> ids_;
  int64_t buffer_size_ = 0;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_PARAMETERS_H_
