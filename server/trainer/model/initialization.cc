#include "server/trainer/model/initialization.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/model/deepnorm_constants.h"
#include "server/trainer/model/flax_random.h"

namespace normlab::trainer {
namespace {

constexpr float kSmallNormal = 0.02f;

// One matrix of the formulas; a fused kernel holds several side by side.
struct Matrix {
  Role role;
  int64_t fan_in = 0;
  int64_t fan_out = 0;
};

// The stack of blocks that a parameter belongs to.
struct Stack {
  int64_t branches = 0;  // added to its stream
  double deepnorm_beta = 1;
};

struct Distribution {
  enum class Kind { kConstant, kNormal, kTruncatedNormal, kUniform };
  Kind kind = Kind::kConstant;
  float scale = 0;  // of the standard normal or of U(-1, 1); the constant

  static Distribution Normal(double deviation) {
    return {Kind::kNormal, static_cast<float>(deviation)};
  }
  static Distribution Uniform(double bound) { return {Kind::kUniform, static_cast<float>(bound)}; }
};

// --- One function for each init, of the parameters that are not constants
// -------------------------

bool IsTable(Role role) { return role == Role::kEmbedding || role == Role::kPositions; }

bool IsHead(Role role) { return role == Role::kHead || role == Role::kTiedEmbedding; }

// What most inits leave as Flax has it.
Distribution TableOf(Role role) {
  return role == Role::kEmbedding ? Distribution::Normal(1) : Distribution{};
}

Distribution Flax(const Matrix& m) {
  if (IsTable(m.role)) return TableOf(m.role);
  if (IsHead(m.role)) return {Distribution::Kind::kNormal, kSmallNormal};
  if (m.role == Role::kBias) return {};
  return {Distribution::Kind::kTruncatedNormal, LecunScale(m.fan_in)};
}

// Radford et al. 2019: the branches' last matrices are scaled so that their sum keeps its variance.
Distribution Gpt2(const Matrix& m, const Stack& stack) {
  if (m.role == Role::kBias) return {};
  if (m.role != Role::kOutput) return Distribution::Normal(kSmallNormal);
  return Distribution::Normal(0.02 / std::sqrt(static_cast<double>(stack.branches)));
}

// Glorot and Bengio 2010.
double XavierDeviation(const Matrix& m) {
  return std::sqrt(2.0 / static_cast<double>(m.fan_in + m.fan_out));
}

Distribution Xavier(const Matrix& m) {
  if (IsTable(m.role)) return TableOf(m.role);
  if (m.role == Role::kBias) return {};
  return Distribution::Uniform(std::sqrt(3.0) * XavierDeviation(m));
}

// torch.nn.Linear: Kaiming uniform with a = sqrt(5), which is U(+-1 / sqrt(fan_in)), and biases
// from the same interval. torch.nn.Embedding is N(0, 1).
Distribution Torch(const Matrix& m) {
  if (IsTable(m.role)) return TableOf(m.role);
  return Distribution::Uniform(1.0 / std::sqrt(static_cast<double>(m.fan_in)));
}

Distribution FanIn(const Matrix& m) {
  if (IsTable(m.role)) return TableOf(m.role);
  if (m.role == Role::kBias) return {};
  return Distribution::Normal(1.0 / std::sqrt(static_cast<double>(m.fan_in)));
}

// Wang et al. 2022: beta on all that scales the branch; queries and keys only choose.
Distribution DeepNorm(const Matrix& m, const Stack& stack) {
  if (IsTable(m.role) || IsHead(m.role) || m.role == Role::kBias) return Flax(m);
  const double gain = m.role == Role::kQuery ? 1 : stack.deepnorm_beta;
  return Distribution::Normal(gain * XavierDeviation(m));
}

// Liu et al. 2020, before profiling.
Distribution Admin(const Matrix& m) { return IsHead(m.role) ? Flax(m) : Xavier(m); }

Distribution Choose(std::string_view init, const Matrix& m, const Stack& stack) {
  if (init == "flax") return Flax(m);
  if (init == "gpt2") return Gpt2(m, stack);
  if (init == "xavier") return Xavier(m);
  if (init == "torch") return Torch(m);
  if (init == "fan-in") return FanIn(m);
  if (init == "deepnorm") return DeepNorm(m, stack);
  if (init == "admin") return Admin(m);
  throw std::runtime_error("unknown init \"" + std::string(init) +
                           "\"; known are flax, gpt2, xavier, torch, fan-in, deepnorm, admin");
}

// --- From a parameter to its matrices
// -------------------------------------------------------------

std::vector<Role> RolesSideBySide(Role role) {
  switch (role) {
    case Role::kQueryKeyValue:
      return {Role::kQuery, Role::kQuery, Role::kInput};
    case Role::kKeyValue:
      return {Role::kQuery, Role::kInput};
    case Role::kGatedInput:
      return {Role::kInput, Role::kInput};
    default:
      return {role};
  }
}

std::vector<Matrix> MatricesOf(const Parameter& parameter) {
  const Role role = parameter.init.role;
  if (role == Role::kBias) return {{role, parameter.init.fan_in, 0}};
  const int64_t rows = parameter.shape[parameter.shape.size() - 2];
  const int64_t columns = parameter.shape.back();
  // An embedding is the head's matrix transposed.
  if (role == Role::kTiedEmbedding) return {{role, columns, rows}};
  const std::vector<Role> roles = RolesSideBySide(role);
  std::vector<Matrix> matrices;
  for (const Role part : roles) {
    matrices.push_back({part, rows, columns / static_cast<int64_t>(roles.size())});
  }
  return matrices;
}

Stack StackOf(const TrainingSettings& settings, std::string_view path) {
  if (settings.model != "encdec") {
    return {2 * settings.layers, DeepNormOfStack(settings.layers).beta};
  }
  if (path.starts_with("encoder")) {
    return {2 * settings.layers, DeepNormOfEncoder(settings.layers, settings.decoder_layers).beta};
  }
  return {3 * settings.decoder_layers, DeepNormOfDecoder(settings.decoder_layers).beta};
}

// --- Drawing
// --------------------------------------------------------------------------------------

// "block_0/qkv/kernel" -> "block_0qkv", the bytes Flax hashes. A layer makes its kernel first and
// its bias second.
RandomKey KeyOf(RandomKey root, const Parameter& parameter) {
  std::string modules = parameter.path.substr(0, parameter.path.rfind('/'));
  std::erase(modules, '/');
  return ParameterKey(root, modules, parameter.init.role == Role::kBias ? 2 : 1);
}

// Multiplies part i of the columns with scales[i].
void ScaleColumns(const std::vector<Distribution>& parts, int64_t columns,
                  std::span<float> values) {
  const size_t part_width = static_cast<size_t>(columns) / parts.size();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] *= parts[i % static_cast<size_t>(columns) / part_width].scale;
  }
}

// Matrices side by side are drawn in one stream and differ in scale only.
void Fill(RandomKey key, const std::vector<Distribution>& parts, int64_t columns,
          std::span<float> values) {
  const bool one_scale = std::ranges::all_of(
      parts, [&](const Distribution& part) { return part.scale == parts[0].scale; });
  const float scale = one_scale ? parts[0].scale : 1.0f;
  switch (parts[0].kind) {
    case Distribution::Kind::kConstant:
      std::ranges::fill(values, scale);
      break;
    case Distribution::Kind::kNormal:
      FillNormal(key, scale, values);
      break;
    case Distribution::Kind::kTruncatedNormal:
      FillTruncatedNormal(key, scale, values);
      break;
    case Distribution::Kind::kUniform:
      FillUniform(key, scale, values);
      break;
  }
  if (!one_scale) ScaleColumns(parts, columns, values);
}

}  // namespace

void InitializeParameters(const TrainingSettings& settings, const ParameterTable& table,
                          std::span<float> buffer) {
  const RandomKey root = RootKey(settings.seed);
  std::ranges::fill(buffer, 0.0f);
  for (const Parameter& parameter : table.all()) {
    const std::span<float> values =
        buffer.subspan(static_cast<size_t>(parameter.offset), static_cast<size_t>(parameter.count));
    if (parameter.init.role == Role::kConstant) {
      std::ranges::fill(values, parameter.init.value);
      continue;
    }
    const Stack stack = StackOf(settings, parameter.path);
    std::vector<Distribution> parts;
    for (const Matrix& matrix : MatricesOf(parameter)) {
      parts.push_back(Choose(settings.init, matrix, stack));
    }
    Fill(KeyOf(root, parameter), parts, parameter.shape.back(), values);
  }
}

}  // namespace normlab::trainer
