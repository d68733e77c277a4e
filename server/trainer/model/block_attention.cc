// The attention of a block, in the forms that the models have.
#include <string>

#include "server/trainer/model/block.h"
#include "server/trainer/model/components/attend.h"
#include "server/trainer/model/components/components.h"
#include "server/trainer/model/components/memory.h"

namespace normlab::trainer {

Value Block::Heads(Value x) const {
  if (settings_.attention == "uniform") {
    const Value values = Linear(Path("value"), x.width(), Role::kInput, settings_.bias, x);
    return MeanOverVisible(settings_.causal, values);
  }
  if (settings_.model == "xl") return HeadsOverMemory(x);
  Value qkv = Linear(Path("qkv"), 3 * x.width(), Role::kQueryKeyValue, settings_.bias, x);
  if (settings_.qk_norm != "off") qkv = NormQueriesKeys(qkv);
  if (settings_.positions == "rotary") qkv = Rotate(settings_.heads, qkv);
  if (surroundings_.part == Part::kEncoder) return SelfAttend(qkv, Sight::kSource);
  if (taps_ != nullptr) taps_->qkv = qkv;
  if (x.program->precision() != Precision::kFp32) {
    return SelfAttend(qkv, settings_.causal ? Sight::kPast : Sight::kAll);
  }
  return AttendHeads(settings_.heads, settings_.causal, qkv);
}

Value Block::SelfAttend(Value qkv, Sight sight) const {
  const int64_t d = settings_.d_model;
  return Attend({.width = d,
                 .heads = settings_.heads,
                 .queries = {qkv, 0},
                 .keys = {qkv, d},
                 .values = {qkv, 2 * d},
                 .sight = sight});
}

Value Block::NormQueriesKeys(Value qkv) const {
  const bool hybrid = settings_.placement == "hybrid" || settings_.placement == "hybrid-star";
  const QueryKeyNormOptions options = {
      .groups = settings_.qk_norm == "rms-head" ? settings_.heads : 1,
      .values = hybrid,
      .gain = settings_.norm_gain,
      .epsilon = settings_.norm_epsilon};
  return QueryKeyNorm(Path(""), options, qkv);
}

Value Block::WithMemory(Value x) const {
  if (settings_.model != "xl") return x;
  return trainer::WithMemory(settings_.memory_length, x);
}

Value Block::HeadsOverMemory(Value x) const {
  const int64_t d = settings_.d_model;
  const Value q = Linear(Path("query"), d, Role::kQuery, settings_.bias, LatestRows(x));
  const Value kv = Linear(Path("key_value"), 2 * d, Role::kKeyValue, settings_.bias, x);
  return Attend({.width = d,
                 .heads = settings_.heads,
                 .queries = {q, 0},
                 .keys = {kv, 0},
                 .values = {kv, d},
                 .sight = Sight::kPast,
                 .memory_filled = surroundings_.memory_filled,
                 .relative_path = Path("attention"),
                 .table_length = settings_.table_length});
}

Value Block::CrossAttention(Value x) const {
  const int64_t d = settings_.d_model;
  const Value q = Linear(Path("cross_query"), d, Role::kQuery, settings_.bias, x);
  const Value kv = Linear(Path("cross_key_value"), 2 * d, Role::kKeyValue, settings_.bias,
                          surroundings_.encoded);
  const Value heads = Attend({.width = d,
                              .heads = settings_.heads,
                              .queries = {q, 0},
                              .keys = {kv, 0},
                              .values = {kv, d},
                              .sight = Sight::kSource});
  return Linear(Path("cross_attention_output"), d, Role::kOutput, settings_.bias, heads);
}

}  // namespace normlab::trainer
