#include "server/trainer/model/parameters.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "server/trainer/model/flax_random.h"

namespace normlab::trainer {
namespace {

constexpr int64_t kAlignment = 16;  // floats in a cache line

// "block_0/qkv/kernel" -> "block_0qkv", the bytes Flax hashes.
std::string ModuleBytes(std::string_view path) {
  std::string bytes(path.substr(0, path.rfind('/')));
  std::erase(bytes, '/');
  return bytes;
}

}  // namespace

Initializer Initializer::Lecun(int64_t fan_in) {
  return {Kind::kTruncatedNormal, LecunScale(fan_in)};
}

ParameterTable::Id ParameterTable::Declare(std::string_view path, std::vector<int64_t> shape,
                                           Initializer init) {
  if (const auto found = ids_.find(path); found != ids_.end()) {
    if ((*this)[found->second].shape != shape) {
      throw std::runtime_error("parameter " + std::string(path) + " declared with two shapes");
    }
    return found->second;
  }
  Parameter parameter{.path = std::string(path), .shape = std::move(shape), .init = init};
  parameter.count = 1;
  for (const int64_t size : parameter.shape) parameter.count *= size;
  parameter.offset = buffer_size_;
  buffer_size_ += (parameter.count + kAlignment - 1) / kAlignment * kAlignment;
  const Id id = static_cast<Id>(parameters_.size());
  ids_.emplace(parameter.path, id);
  parameters_.push_back(std::move(parameter));
  return id;
}

int64_t ParameterTable::parameter_count() const {
  int64_t total = 0;
  for (const Parameter& parameter : parameters_) total += parameter.count;
  return total;
}

void ParameterTable::Initialize(int64_t seed, std::span<float> buffer) const {
  const RandomKey root = RootKey(seed);
  std::ranges::fill(buffer, 0.0f);
  for (const Parameter& parameter : parameters_) {
    const std::span<float> values =
        buffer.subspan(static_cast<size_t>(parameter.offset), static_cast<size_t>(parameter.count));
    const float value = parameter.init.value;
    switch (parameter.init.kind) {
      case Initializer::Kind::kConstant:
        std::ranges::fill(values, value);
        break;
      case Initializer::Kind::kNormal:
        FillNormal(ParameterKey(root, ModuleBytes(parameter.path)), value, values);
        break;
      case Initializer::Kind::kTruncatedNormal:
        FillTruncatedNormal(ParameterKey(root, ModuleBytes(parameter.path)), value, values);
        break;
    }
  }
}

}  // namespace normlab::trainer
