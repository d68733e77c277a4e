// The sublayers of one block, for placements to wire together.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_BLOCK_H_
#define NORMLAB_SERVER_TRAINER_MODEL_BLOCK_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/model/program.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// One sum omega * x + branch.
struct ScaledSumTap {
  Value x;       // [rows, d]
  Value branch;  // [rows, d]
  ParameterTable::Id omega;
};

// What diagnostics look at in a block. Values stay readable until the next Forward.
struct BlockTaps {
  std::string path;             // "block_3": what its parameters' names begin with
  Value input;                  // [rows, d]
  Value output;                 // [rows, d]
  std::vector<Value> branches;  // [rows, d] each, in order: attention, feed-forward
  Value qkv;                    // [rows, 3 d] as the attention reads it; none where it is another
  std::vector<ScaledSumTap> scaled_sums;  // of placement admin, in the order of the branches
};

// Each call records a part with its own parameters under "block_N/". A placement whose block reads
// `x + b.Branch(b.Attention(b.Norm("attention_norm", x)))` is x + A(N(x)).
class Block {
 public:
  // Both arguments outlive the block; `taps` may be null.
  Block(const TrainingSettings& settings, int64_t index, BlockTaps* taps = nullptr);

  int64_t index() const { return index_; }  // from 0
  const TrainingSettings& settings() const { return settings_; }

  // A: queries, keys and values, heads, output projection W_O. Uniform attention is the theory's
  // form (Xiong et al. 2020): the mean of one projection, PATH/value, and nothing else.
  Value Attention(Value x) const { return AttentionOutput(Heads(x)); }
  // M: d -> ffn_width (twice for swiglu, gate first), activation, -> d.
  Value FeedForward(Value x) const { return FeedForwardOutput(Hidden(x)); }

  // The two halves of each, for placements that do something in between.
  Value Heads(Value x) const;                   // [rows, d] -> [rows, d], head beside head
  Value AttentionOutput(Value heads) const;     // W_O
  Value Hidden(Value x) const;                  // [rows, d] -> [rows, ffn_width]
  Value FeedForwardOutput(Value hidden) const;  // W_2

  // N: the run's norm.
  Value Norm(std::string_view name, Value x) const;
  // What is added to the stream: the branch with the run's dropout and residual_scale. Every
  // placement passes each of its branches through here once, last.
  Value Branch(Value branch) const;
  // Each head of [rows, d] times a learned number of its own, first 1.
  Value ScaleHeads(std::string_view name, Value heads) const;
  // omega * x + Branch(branch) with a learned vector omega, first 1: the sum that Admin profiles.
  Value ScaledSum(std::string_view name, Value x, Value branch) const;

  std::string Path(std::string_view name) const;

  // Tells diagnostics where the block begins and ends. Called by whoever records the stack.
  void Tap(Value input, Value output) const;

 private:
  // qk_norm; of the hybrid placements also on values.
  Value NormQueriesKeys(Value qkv) const;

  const TrainingSettings& settings_;
  const int64_t index_;
  BlockTaps* const taps_;
};

// The run's norm under any path, for norms outside blocks.
Value RecordNorm(const TrainingSettings& settings, std::string_view path, Value x);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_BLOCK_H_
