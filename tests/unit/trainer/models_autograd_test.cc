// The derivatives of what other models than the plain decoder are made of, against LibTorch's
// automatic ones in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "server/trainer/model/block.h"
#include "server/trainer/model/components/attend.h"
#include "server/trainer/model/components/components.h"
#include "server/trainer/model/components/memory.h"
#include "tests/unit/trainer/autograd.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

struct Shape {
  int64_t batch;
  int64_t time;
  int64_t width;
  int64_t heads;
};

// Whole vectors, and ones that fill no vector of any instruction set. Heads have an even width.
const Shape kShapes[] = {{2, 16, 64, 4}, {3, 7, 20, 2}, {1, 1, 6, 3}, {2, 33, 34, 1}};

class ModelsAutogradTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Sets, ModelsAutogradTest, testing::ValuesIn(AvailableKernels()),
                         [](const auto& set) { return std::string(set.param->instruction_set); });

torch::Tensor ReferenceActivation(const std::string& name, const torch::Tensor& x) {
  if (name == "relu") return torch::relu(x);
  if (name == "gelu") return torch::gelu(x);
  if (name == "gelu-tanh") return torch::gelu(x, "tanh");
  const Tensors halves = x.chunk(2, -1);
  return torch::silu(halves[0]) * halves[1];
}

TEST_P(ModelsAutogradTest, EveryActivation) {
  for (const std::string name : {"relu", "gelu", "gelu-tanh", "swiglu"}) {
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(testing::Message() << name << " " << s.width);
      Probe probe(
          s.batch, s.time, s.width, [&](Value x) { return Activate(name, x); }, kernels());
      ExpectSameAsAutograd(probe, s.batch, s.time, [&](const torch::Tensor& x, const Tensors&) {
        return ReferenceActivation(name, x);
      });
    }
  }
}

TEST_P(ModelsAutogradTest, AnActivationsInputReadTwiceGetsBothGradients) {
  for (const std::string name : {"relu", "gelu", "swiglu"}) {
    const auto both = [&](Value x) { return Activate(name, x) + Activate(name, x + x); };
    Probe probe(2, 5, 12, both, kernels());
    ExpectSameAsAutograd(probe, 2, 5, [&](const torch::Tensor& x, const Tensors&) {
      return ReferenceActivation(name, x) + ReferenceActivation(name, x + x);
    });
  }
}

// Su et al. 2021, equation 34, over the positions of [batch, time, 2 pairs] as complex numbers.
torch::Tensor ReferenceTurn(const torch::Tensor& x) {
  const int64_t pairs = x.size(-1) / 2;
  const auto doubles = torch::TensorOptions().dtype(torch::kFloat64);
  const torch::Tensor frequency =
      torch::pow(10000.0, -torch::arange(pairs, doubles) / static_cast<double>(pairs));
  const torch::Tensor angle = torch::outer(torch::arange(x.size(1), doubles), frequency);
  const torch::Tensor z =
      torch::view_as_complex(x.reshape({x.size(0), x.size(1), pairs, 2}).contiguous());
  const torch::Tensor turned = z * torch::polar(torch::ones_like(angle), angle);
  return torch::view_as_real(turned).reshape(x.sizes());
}

TEST_P(ModelsAutogradTest, RotaryTurnsTheQueriesAndKeysOfEveryHead) {
  for (const Shape& s : kShapes) {
    Probe probe(
        s.batch, s.time, 3 * s.width, [&](Value x) { return Rotate(s.heads, x) + x; }, kernels());
    ExpectSameAsAutograd(probe, s.batch, s.time, [&](const torch::Tensor& x, const Tensors&) {
      Tensors heads = x.chunk(3 * s.heads, -1);
      for (int64_t h = 0; h < 2 * s.heads; ++h) {
        heads[static_cast<size_t>(h)] = ReferenceTurn(heads[static_cast<size_t>(h)]);
      }
      return torch::cat(heads, -1) + x;
    });
  }
}

TEST_P(ModelsAutogradTest, MeanOverAllPositionsAndOverThePast) {
  for (const bool causal : {true, false}) {
    for (const Shape& s : kShapes) {
      Probe probe(
          s.batch, s.time, s.width, [&](Value x) { return MeanOverVisible(causal, x) + x; },
          kernels());
      ExpectSameAsAutograd(probe, s.batch, s.time, [&](const torch::Tensor& x, const Tensors&) {
        torch::Tensor weights = torch::ones({s.time, s.time}, torch::kFloat64);
        if (causal) weights = weights.tril();
        return torch::matmul(weights / weights.sum(1, true), x) + x;
      });
    }
  }
}

// --- Attention of other kinds -------------------------------------------------------------------

// What Attend() computes: queries [batch, t, d], keys and values [batch, k, d], `seen` [batch or 1,
// t, k]; what is added to the scores [batch, heads, t, k] may be undefined.
torch::Tensor ReferenceAttend(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, int64_t heads, const torch::Tensor& seen,
                              const torch::Tensor& added) {
  const int64_t width = q.size(-1) / heads;
  const auto split = [&](const torch::Tensor& x) {
    return x.reshape({x.size(0), x.size(1), heads, width}).transpose(1, 2);
  };
  torch::Tensor scores = split(q).matmul(split(k).transpose(2, 3));
  if (added.defined()) scores = scores + added;
  scores = scores / std::sqrt(static_cast<double>(width));
  const torch::Tensor hidden = seen.unsqueeze(1).logical_not();
  const torch::Tensor p = scores.masked_fill(hidden, -1e30).softmax(-1).masked_fill(hidden, 0.0);
  return p.matmul(split(v)).transpose(1, 2).reshape(q.sizes());
}

TEST_P(ModelsAutogradTest, AttendOverAllThePastAndTheSource) {
  for (const Sight sight : {Sight::kAll, Sight::kPast, Sight::kSource}) {
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(sight) << " " << s.time);
      torch::Tensor seen = torch::ones({s.batch, s.time, s.time}, torch::kBool);
      std::vector<int32_t> lengths;
      for (int64_t b = 0; b < s.batch; ++b) {
        lengths.push_back(static_cast<int32_t>(b % 2 == 0 ? (s.time + 1) / 2 : 0));
        if (sight == Sight::kSource) seen[b].slice(1, lengths.back()).fill_(false);
      }
      if (sight == Sight::kPast) seen = seen.tril();
      const auto part = [&](Value x) {
        x.program->inputs().source_lengths = lengths;
        return Attend({.width = s.width,
                       .heads = s.heads,
                       .queries = {x, s.width},
                       .keys = {x, 0},
                       .values = {x, 2 * s.width},
                       .sight = sight});
      };
      Probe probe(s.batch, s.time, 3 * s.width, part, kernels());
      ExpectSameAsAutograd(probe, s.batch, s.time, [&](const torch::Tensor& x, const Tensors&) {
        const Tensors parts = x.chunk(3, -1);
        return ReferenceAttend(parts[1], parts[0], parts[2], s.heads, seen, {});
      });
    }
  }
}

TrainingSettings BlockSettings(const Shape& s) {
  TrainingSettings settings;
  settings.d_model = s.width;
  settings.heads = s.heads;
  settings.ffn_width = 2 * s.width + 1;
  return settings;
}

// Row t and key k are distance t + memory - k apart; farther than the table counts as its end.
torch::Tensor ReferenceRelative(const torch::Tensor& q, const torch::Tensor& k,
                                const torch::Tensor& table, const torch::Tensor& bias,
                                const torch::Tensor& key_bias, int64_t heads) {
  const int64_t time = q.size(1);
  const int64_t keys = k.size(1);
  const int64_t width = q.size(2) / heads;
  const torch::Tensor distance =
      (torch::arange(time).unsqueeze(1) + (keys - time) - torch::arange(keys).unsqueeze(0))
          .clamp(0, table.size(0) - 1);
  const torch::Tensor near =
      table.index_select(0, distance.flatten()).reshape({time, keys, heads, width});
  const torch::Tensor split_q = q.reshape({q.size(0), time, heads, width});
  const torch::Tensor split_k = k.reshape({k.size(0), keys, heads, width});
  const torch::Tensor position = torch::einsum("bthw,tkhw->bhtk", {split_q, near});
  const torch::Tensor content =
      torch::einsum("hw,bkhw->bhk", {key_bias.reshape({heads, width}), split_k}).unsqueeze(2);
  const torch::Tensor offset =
      bias.index_select(0, distance.flatten()).reshape({time, keys, heads}).permute({2, 0, 1});
  return position + content + offset;
}

TEST_P(ModelsAutogradTest, TransformerXlAttentionWithMemoryAndRelativePositions) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(s.time);
    TrainingSettings settings = BlockSettings(s);
    settings.model = "xl";
    settings.norm_epsilon = 1e-3;
    settings.memory_length = s.time;
    settings.table_length = std::max<int64_t>(1, s.time);  // some distances are beyond it
    const auto part = [&](Value x) {
      const Value filled = MemoryFilled(settings.memory_length, *x.program);
      const Block block(settings, 0, nullptr, {.memory_filled = filled});
      return block.Attention(block.Norm("norm", block.WithMemory(x)));
    };
    Probe probe(s.batch, s.time, s.width, part, kernels());
    probe.Run();  // fills the memory
    for (size_t i = 0; i < probe.parameters().all().size(); ++i) {
      std::ranges::fill(probe.gradient(static_cast<ParameterTable::Id>(i)), 0.0f);
    }
    const torch::Tensor seen = torch::ones({1, s.time, 2 * s.time}, torch::kBool).tril(s.time);
    ExpectSameAsAutograd(
        probe, s.batch, s.time,
        [&](const torch::Tensor& x, const Tensors& p) {
          const torch::Tensor all =
              ReferenceNorm("layernorm", torch::cat({x.detach(), x}, 1), p[0], p[1], 1e-3);
          const torch::Tensor q = all.slice(1, s.time).matmul(p[2]) + p[3];
          const Tensors kv = (all.matmul(p[4]) + p[5]).chunk(2, -1);
          const torch::Tensor added = ReferenceRelative(q, kv[0], p[6], p[7], p[8], s.heads);
          return ReferenceAttend(q, kv[0], kv[1], s.heads, seen, added).matmul(p[9]) + p[10];
        },
        5e-6);
  }
}

TEST_P(ModelsAutogradTest, CrossAttention) {
  for (const Shape& s : kShapes) {
    TrainingSettings settings = BlockSettings(s);
    const auto part = [&](Value x) {
      const Value encoded = x + x;
      return Block(settings, 0, nullptr, {.part = Part::kDecoder, .encoded = encoded})
          .CrossAttention(x);
    };
    Probe probe(s.batch, s.time, s.width, part, kernels());
    const torch::Tensor seen = torch::ones({1, s.time, s.time}, torch::kBool);
    ExpectSameAsAutograd(
        probe, s.batch, s.time,
        [&](const torch::Tensor& x, const Tensors& p) {
          const torch::Tensor q = x.matmul(p[0]) + p[1];
          const Tensors kv = ((x + x).matmul(p[2]) + p[3]).chunk(2, -1);
          return ReferenceAttend(q, kv[0], kv[1], s.heads, seen, {}).matmul(p[4]) + p[5];
        },
        5e-6);
  }
}

// --- Switch -------------------------------------------------------------------------------------

// Parameters: the router's kernel, then four for each expert.
torch::Tensor ReferenceSwitch(const torch::Tensor& x, const Tensors& p, int64_t capacity,
                              bool pass) {
  const torch::Tensor rows = x.flatten(0, 1);
  const torch::Tensor probabilities = rows.matmul(p[0]).softmax(-1);
  const torch::Tensor chosen = probabilities.argmax(-1);
  std::vector<int64_t> taken(static_cast<size_t>(probabilities.size(-1)));
  Tensors results;
  for (int64_t row = 0; row < rows.size(0); ++row) {
    const auto e = static_cast<size_t>(chosen[row].item<int64_t>());
    torch::Tensor result = pass ? rows[row] : torch::zeros_like(rows[row]);
    if (taken[e]++ < capacity) {
      const torch::Tensor hidden =
          torch::relu(rows[row].unsqueeze(0).matmul(p[1 + 4 * e]) + p[2 + 4 * e]);
      result = (hidden.matmul(p[3 + 4 * e]) + p[4 + 4 * e])[0];
    }
    results.push_back(probabilities[row][static_cast<int64_t>(e)] * result);
  }
  return torch::stack(results).reshape(x.sizes());
}

TEST_P(ModelsAutogradTest, SwitchWithRoomAndWithout) {
  const Shape s = {2, 9, 12, 1};
  for (const double factor : {3.0, 0.7}) {
    for (const bool pass : {false, true}) {
      TrainingSettings settings = BlockSettings(s);
      settings.ffn = "switch";
      settings.experts = 3;
      settings.activation = "relu";
      settings.capacity_factor = factor;
      settings.switch_overflow = pass ? "pass" : "drop";
      settings.balance_coefficient = 0;  // tested by hand in switch_test.cc
      Probe probe(
          s.batch, s.time, s.width, [&](Value x) { return Block(settings, 0).FeedForward(x); },
          kernels());
      const int64_t capacity = factor == 3.0 ? 18 : 4;  // floor(0.7 * 18 / 3)
      ExpectSameAsAutograd(
          probe, s.batch, s.time,
          [&](const torch::Tensor& x, const Tensors& p) {
            return ReferenceSwitch(x, p, capacity, pass);
          },
          5e-6);
    }
  }
}

}  // namespace
}  // namespace normlab::trainer
