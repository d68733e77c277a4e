#include "server/trainer/model/placement/placement.h"

#include <array>
#include <stdexcept>
#include <utility>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

using Entry = std::pair<std::string_view, const Placement& (*)()>;

constexpr std::array kPlacements = {
    Entry{"pre", PrePlacement},
    Entry{"post", PostPlacement},
};

}  // namespace

const Placement& FindPlacement(std::string_view name) {
  std::string known;
  for (const auto& [key, placement] : kPlacements) {
    if (key == name) return placement();
    known += (known.empty() ? "" : ", ") + std::string(key);
  }
  throw std::runtime_error("unknown placement \"" + std::string(name) + "\"; known are " + known);
}

std::vector<std::string_view> PlacementNames() {
  std::vector<std::string_view> names;
  for (const auto& entry : kPlacements) names.push_back(entry.first);
  return names;
}

std::string Block::Path(std::string_view name) const {
  return "block_" + std::to_string(index_) + "/" + std::string(name);
}

Value Block::Attention(Value x) const {
  const int64_t d = x.width();
  const Value qkv = Linear(Path("qkv"), 3 * d, Initializer::Lecun(d), true, x);
  const Value heads = AttendHeads(settings_.heads, true, qkv);
  return Linear(Path("attention_output"), d, Initializer::Lecun(d), true, heads);
}

Value Block::FeedForward(Value x) const {
  const int64_t d = x.width();
  const int64_t width = settings_.ffn_width;
  const Value hidden = Gelu(Linear(Path("mlp_in"), width, Initializer::Lecun(d), true, x));
  return Linear(Path("mlp_out"), d, Initializer::Lecun(width), true, hidden);
}

Value Block::Norm(std::string_view name, Value x) const {
  return RecordNorm(settings_, Path(name), x);
}

Value RecordNorm(const TrainingSettings& settings, std::string_view path, Value x) {
  if (settings.norm == "layernorm") return LayerNorm(path, settings.norm_epsilon, x);
  if (settings.norm == "rmsnorm") return RmsNorm(path, settings.norm_epsilon, x);
  throw std::runtime_error("unknown norm \"" + settings.norm + "\"; known are layernorm, rmsnorm");
}

int64_t NormParameterCount(const TrainingSettings& settings) {
  return (settings.norm == "layernorm" ? 2 : 1) * settings.d_model;
}

}  // namespace normlab::trainer
