#include "server/trainer/train/weights.h"

#include <algorithm>
#include <stdexcept>

namespace normlab::trainer {
namespace {

constexpr size_t kMostNames = 40;  // in a message; the rest is counted

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::string List(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMostNames) {
    text += " and " + std::to_string(names.size() - kMostNames) + " more";
  }
  return text;
}

}  // namespace

void CheckShape(const SafetensorsFile& file, const std::string& name,
                const std::vector<int64_t>& shape) {
  const SafetensorsFile::Tensor* tensor = file.Find(name);
  if (tensor == nullptr) throw UnreadableFile(file.path() + " has no tensor " + name);
  if (tensor->shape == shape) return;
  throw std::runtime_error(file.path() + " has " + name + " of shape " + ShapeText(tensor->shape) +
                           " where the model has " + ShapeText(shape));
}

void LoadWeights(const std::string& path, bool allow_missing, const ParameterTable& parameters,
                 std::span<float> weights) {
  const SafetensorsFile file(path);
  file.VerifyChecksum();
  std::vector<std::string> missing;
  std::vector<const Parameter*> present;
  for (const Parameter& parameter : parameters.all()) {
    if (file.Find(parameter.path) == nullptr) {
      missing.push_back(parameter.path);
    } else {
      CheckShape(file, parameter.path, parameter.shape);
      present.push_back(&parameter);
    }
  }
  if (!missing.empty() && !allow_missing) {
    throw std::runtime_error(path + " lacks " + std::to_string(missing.size()) + " of the " +
                             std::to_string(parameters.all().size()) +
                             " weights (allow_missing draws them instead): " + List(missing));
  }
  for (const Parameter* parameter : present) {
    file.ReadConverted(parameter->path, weights.subspan(static_cast<size_t>(parameter->offset),
                                                        static_cast<size_t>(parameter->count)));
  }
}

}  // namespace normlab::trainer
