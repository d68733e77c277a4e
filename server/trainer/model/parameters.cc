#include "server/trainer/model/parameters.h"

#include <stdexcept>
#include <utility>

namespace normlab::trainer {
namespace {

constexpr int64_t kAlignment = 16;  // floats in a cache line

}  // namespace

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

ParameterTable::Id ParameterTable::Find(std::string_view path) const {
  if (const auto found = ids_.find(path); found != ids_.end()) return found->second;
  throw std::runtime_error("there is no parameter " + std::string(path));
}

int64_t ParameterTable::parameter_count() const {
  int64_t total = 0;
  for (const Parameter& parameter : parameters_) total += parameter.count;
  return total;
}

}  // namespace normlab::trainer
