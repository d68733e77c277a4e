#include "server/trainer/model/block.h"

#include <stdexcept>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {

Block::Block(const TrainingSettings& settings, int64_t index, BlockTaps* taps)
    : settings_(settings), index_(index), taps_(taps) {
  if (taps_ != nullptr) taps_->path = "block_" + std::to_string(index_);
}

std::string Block::Path(std::string_view name) const {
  return "block_" + std::to_string(index_) + "/" + std::string(name);
}

Value Block::Attention(Value x) const {
  const int64_t d = x.width();
  const Value qkv = Linear(Path("qkv"), 3 * d, Initializer::Lecun(d), settings_.bias, x);
  const Value heads = AttendHeads(settings_.heads, settings_.causal, qkv);
  return Linear(Path("attention_output"), d, Initializer::Lecun(d), settings_.bias, heads);
}

Value Block::FeedForward(Value x) const {
  const int64_t d = x.width();
  const int64_t width = settings_.ffn_width;
  const Value hidden =
      Gelu(Linear(Path("mlp_in"), width, Initializer::Lecun(d), settings_.bias, x));
  return Linear(Path("mlp_out"), d, Initializer::Lecun(width), settings_.bias, hidden);
}

Value Block::Norm(std::string_view name, Value x) const {
  return RecordNorm(settings_, Path(name), x);
}

Value Block::Branch(Value branch) const {
  if (taps_ != nullptr) taps_->branches.push_back(branch);
  return branch;
}

void Block::Tap(Value input, Value output) const {
  if (taps_ == nullptr) return;
  taps_->input = input;
  taps_->output = output;
}

Value RecordNorm(const TrainingSettings& settings, std::string_view path, Value x) {
  if (settings.norm == "layernorm") return LayerNorm(path, settings.norm_epsilon, x);
  if (settings.norm == "rmsnorm") return RmsNorm(path, settings.norm_epsilon, x);
  throw std::runtime_error("unknown norm \"" + settings.norm + "\"; known are layernorm, rmsnorm");
}

}  // namespace normlab::trainer
