// The sublayers of one block, for placements to wire together.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_BLOCK_H_
#define NORMLAB_SERVER_TRAINER_MODEL_BLOCK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/model/components/attend.h"
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

// Which stack a block is in.
enum class Part {
  kOnly,     // the model's only one
  kEncoder,  // of an encoder-decoder
  kDecoder,
};

// The model around a block.
struct Surroundings {
  Part part = Part::kOnly;
  Value encoded = {};                                 // decoder: the encoder's output
  std::optional<Value> memory_filled = std::nullopt;  // Transformer-XL: see MemoryFilled()
};

// Each call records a part with its own parameters under "block_N/" ("encoder_block_N/" in an
// encoder). A placement whose block reads
// `x + b.Branch(b.Attention(b.Norm("attention_norm", x)))` is x + A(N(x)).
class Block {
 public:
  // Settings and taps outlive the block; `taps` may be null.
  Block(const TrainingSettings& settings, int64_t index, BlockTaps* taps = nullptr,
        const Surroundings& surroundings = {});

  int64_t index() const { return index_; }  // from 0
  const TrainingSettings& settings() const { return settings_; }
  Part part() const { return surroundings_.part; }

  // A: queries, keys and values, heads, output projection W_O. Uniform attention is the theory's
  // form (Xiong et al. 2020): the mean of one projection, PATH/value, and nothing else.
  Value Attention(Value x) const { return AttentionOutput(Heads(x)); }
  // What Transformer-XL's attention (and the norm before it) reads: x behind what the layer
  // remembers, [batch * (memory + time), d]. In other models x itself.
  Value WithMemory(Value x) const;
  // Of a decoder behind an encoder: queries from x, keys and values from what the encoder made of
  // the source, and an output projection.
  Value CrossAttention(Value x) const;
  // M: d -> ffn_width (twice for swiglu, gate first), activation, -> d; or one of several of these
  // for each row (ffn = switch).
  Value FeedForward(Value x) const;

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
  Value SelfAttend(Value qkv, Sight sight) const;
  Value HeadsOverMemory(Value x) const;
  // The two halves of a feed-forward part whose parameters are under "EXPERT".
  Value HiddenOf(const std::string& expert, Value x) const;
  Value OutputOf(const std::string& expert, Value hidden) const;
  Value Experts(Value x) const;

  const TrainingSettings& settings_;
  const int64_t index_;
  BlockTaps* const taps_;
  const Surroundings surroundings_;
  std::string path_;
};

// The run's norm under any path, for norms outside blocks.
Value RecordNorm(const TrainingSettings& settings, std::string_view path, Value x);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_BLOCK_H_
