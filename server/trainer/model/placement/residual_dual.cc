#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

// ResiDual (Xie et al. 2023): a Post-Norm stream x, and beside it a stream d that adds up all
// branches unnormalised. The model's output is x + N(d).
class ResidualDual final : public Placement {
 public:
  Value RecordBlock(const Block& b, Value x) const override {
    return RecordPost(b, x, [](Value) {});
  }

  Value RecordStack(std::span<const Block> blocks, Value x) const override {
    Value d = x;
    for (const Block& b : blocks) {
      const Value input = x;
      x = RecordPost(b, x, [&](Value f) { d = d + f; });
      b.Tap(input, x);
    }
    return x + RecordNorm(blocks.front().settings(), "dual_norm", d);
  }

 private:
  // The x-stream; gives each branch to `add`.
  template <typename Add>
  static Value RecordPost(const Block& b, Value x, const Add& add) {
    const Value a = b.Branch(b.Attention(x));
    add(a);
    const Value u = b.Norm("attention_norm", x + a);
    const Value m = b.Branch(b.FeedForward(u));
    add(m);
    return b.Norm("mlp_norm", u + m);
  }
};

}  // namespace

const Placement& ResidualDualPlacement() {
  static const ResidualDual placement;
  return placement;
}

}  // namespace normlab::trainer
