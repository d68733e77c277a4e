#include "server/domain/model_size.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "server/base/gpu_context.h"

namespace normlab::domain {
namespace {

using v1::RunSpec;

// What a placement puts around attention and feed-forward in each block.
struct Wiring {
  std::string_view placement;
  int norms = 0;          // over d_model
  int wide_norms = 0;     // over ffn_width, inside the feed-forward layer
  int vectors = 0;        // learned, of d_model
  int scalars = 0;        // learned
  bool per_head = false;  // one learned scalar for each head
  int own_norms = 0;      // over d_model, in the whole stack: besides final_norm
  int values = 0;         // [rows, d_model] kept for the way back, besides norms and sums
};

// server/trainer/model/placement has the formulas, one file each.
constexpr std::array kWirings = {
    Wiring{.placement = "pre", .norms = 2},
    Wiring{.placement = "post", .norms = 2},
    Wiring{.placement = "post-single", .norms = 1},
    Wiring{.placement = "sandwich", .norms = 4},
    Wiring{.placement = "olmo2", .norms = 2},
    Wiring{.placement = "normformer", .norms = 3, .wide_norms = 1, .per_head = true, .values = 1},
    Wiring{.placement = "deepnorm", .norms = 2, .values = 2},
    Wiring{.placement = "admin", .norms = 2, .vectors = 2, .values = 2},
    Wiring{.placement = "rezero", .scalars = 1, .values = 2},
    Wiring{.placement = "layerscale", .norms = 2, .vectors = 2, .values = 2},
    Wiring{.placement = "b2t", .norms = 2, .values = 1},
    Wiring{.placement = "residual-dual", .norms = 2, .own_norms = 1, .values = 2},
    Wiring{.placement = "mix", .norms = 2},
    Wiring{.placement = "hybrid", .norms = 1},
    Wiring{.placement = "hybrid-star", .norms = 1},
    Wiring{.placement = "lns", .norms = 2, .values = 2},
    Wiring{.placement = "none"},
};

const Wiring& WiringOf(const RunSpec& spec) {
  const auto* found = std::ranges::find(kWirings, spec.placement(), &Wiring::placement);
  return found != kWirings.end() ? *found : kWirings.front();
}

bool IsHybrid(const RunSpec& spec) {
  return spec.placement() == "hybrid" || spec.placement() == "hybrid-star";
}

// Gain and bias; dyt has its alpha besides.
int64_t NormParameters(const RunSpec& spec, int64_t width) {
  if (spec.norm() == "dyt") return 2 * width + 1;
  if (!spec.norm_gain()) return 0;
  return spec.norm() == "rmsnorm" ? width : 2 * width;
}

int64_t LinearParameters(const RunSpec& spec, int64_t in, int64_t out) {
  return in * out + (spec.bias() ? out : 0);
}

// Gains of the norms of queries and keys (and of the values of hybrid).
int64_t QkNormParameters(const RunSpec& spec) {
  if (!spec.norm_gain() || spec.qk_norm() == "off") return 0;
  const int64_t parts = IsHybrid(spec) ? 3 : 2;
  const int64_t width =
      spec.qk_norm() == "rms-full" ? spec.d_model() : spec.d_model() / spec.heads();
  return parts * width;
}

int64_t AttentionParameters(const RunSpec& spec) {
  const int64_t d = spec.d_model();
  if (spec.attention() == "uniform") return LinearParameters(spec, d, d);
  int64_t count = LinearParameters(spec, d, 3 * d) + LinearParameters(spec, d, d);
  count += QkNormParameters(spec);
  // R and S of each distance, and v, the bias of the queries.
  if (spec.model() == "xl") count += spec.table_length() * (d + spec.heads()) + d;
  return count;
}

// Queries from the decoder, keys and values from the encoder.
int64_t CrossAttentionParameters(const RunSpec& spec) {
  const int64_t d = spec.d_model();
  return 2 * LinearParameters(spec, d, d) + LinearParameters(spec, d, 2 * d);
}

int64_t FeedForwardParameters(const RunSpec& spec) {
  const int64_t d = spec.d_model();
  const int64_t width = spec.ffn_width();
  const int64_t inputs = spec.activation() == "swiglu" ? 2 : 1;
  const int64_t dense =
      LinearParameters(spec, d, inputs * width) + LinearParameters(spec, width, d);
  if (spec.ffn() != "switch") return dense;
  return spec.experts() * dense + d * spec.experts();  // with the router
}

int64_t WiringParameters(const RunSpec& spec) {
  const Wiring& wiring = WiringOf(spec);
  return wiring.norms * NormParameters(spec, spec.d_model()) +
         wiring.wide_norms * NormParameters(spec, spec.ffn_width()) +
         wiring.vectors * spec.d_model() + wiring.scalars + (wiring.per_head ? spec.heads() : 0);
}

// The first block of hybrid-star is a Pre-Norm block.
int64_t FirstBlockExtra(const RunSpec& spec) {
  return spec.placement() == "hybrid-star" ? NormParameters(spec, spec.d_model()) : 0;
}

int64_t EndParameters(const RunSpec& spec) {
  const int64_t table = spec.vocab_size() * spec.d_model();
  const int64_t embeddings = spec.data() == "gaussian" ? 0 : spec.model() == "encdec" ? 2 : 1;
  const int64_t stacks = spec.model() == "encdec" ? 2 : 1;
  const int64_t positions =
      spec.positions() == "learned" ? spec.sequence_length() * spec.d_model() : 0;
  const int64_t norms = WiringOf(spec).own_norms + (spec.final_norm() == "on" ? stacks : 0);
  return embeddings * table + (spec.tie_embeddings() ? 0 : table) + stacks * positions +
         norms * NormParameters(spec, spec.d_model());
}

// Sizes as numbers of the formulas below.
struct Sizes {
  explicit Sizes(const RunSpec& spec)
      : d(static_cast<double>(spec.d_model())),
        ffn(static_cast<double>(spec.ffn_width())),
        vocab(static_cast<double>(spec.vocab_size())),
        time(static_cast<double>(spec.sequence_length())),
        memory(spec.model() == "xl" ? static_cast<double>(spec.memory_length()) : 0),
        layers(static_cast<double>(spec.layers())),
        decoder_layers(spec.model() == "encdec" ? static_cast<double>(spec.decoder_layers()) : 0),
        batch(static_cast<double>(spec.batch_size())),
        rows(time * batch) {}

  const double d, ffn, vocab, time, memory, layers, decoder_layers, batch;
  const double rows;  // of one batch
};

// Multiply-adds of one row, forward.
double FeedForwardProducts(const RunSpec& spec, const Sizes& s) {
  const double matrices = spec.activation() == "swiglu" ? 3 : 2;
  const double router = spec.ffn() == "switch" ? s.d * static_cast<double>(spec.experts()) : 0;
  return matrices * s.d * s.ffn + router;
}

// Scores and mixing over the keys that a row sees on average.
double AttentionProducts(const RunSpec& spec, const Sizes& s, bool causal) {
  if (spec.attention() == "uniform") return s.d * s.d;
  const double keys = s.memory + (causal ? (s.time + 1) / 2 : s.time);
  const double projections = 4 * s.d * s.d;
  if (spec.model() != "xl") return projections + 2 * s.d * keys;
  // One more product with the distances; keys and values of the memory are projected again.
  return projections + 2 * s.d * s.d * s.memory / s.time + 3 * s.d * keys;
}

double CrossAttentionProducts(const Sizes& s) { return 4 * s.d * s.d + 2 * s.d * s.time; }

// Floats kept of one row in one block, for the way back.
double BlockValues(const RunSpec& spec, const Sizes& s) {
  const Wiring& wiring = WiringOf(spec);
  const double sums = 2;
  double values = (wiring.norms + sums + wiring.values) * s.d + wiring.wide_norms * s.ffn;
  if (spec.attention() == "uniform") {
    values += 2 * s.d;
  } else {
    const double keys = s.time + s.memory;
    values += 5 * s.d + static_cast<double>(spec.heads()) * keys;  // qkv, heads, output, softmax
    if (spec.qk_norm() != "off" || spec.positions() == "rotary") values += 3 * s.d;
    // Memory and stream side by side, both normalised; keys and values of both.
    if (spec.model() == "xl") values += 4 * s.d * s.memory / s.time + s.d;
  }
  const double hidden = spec.activation() == "swiglu" ? 3 : 2;
  const double room = spec.ffn() == "switch" ? std::max(1.0, spec.capacity_factor()) : 1;
  values += room * (hidden * s.ffn + s.d);
  if (spec.ffn() == "switch") values += 2 * s.d;  // gathered and scattered
  // Rounded copies of what goes into each product and of the gradients that come back.
  if (spec.precision() == "bf16") values += 8 * s.d + hidden * s.ffn;
  if (spec.dropout() > 0) values += 2 * s.d;
  if (spec.residual_scale() != 1) values += 2 * s.d;
  return values;
}

double CrossAttentionValues(const RunSpec& spec, const Sizes& s) {
  return 7 * s.d + static_cast<double>(spec.heads()) * s.time;  // q, kv, heads, output, norm, sum
}

// Gradients of values alive at a time, floats a row: of the stream, of the widest part, of logits.
double LiveGradients(const RunSpec& spec, const Sizes& s) {
  const double hidden = spec.activation() == "swiglu" ? 3 : 2;
  return 7 * s.d + hidden * s.ffn + s.vocab;
}

// Floats of a step: what is kept for the way back, `more` of each row in each block besides, and
// the gradients alive at a time.
double StepValues(const RunSpec& spec, const Sizes& s, double more) {
  const double blocks = (s.layers + s.decoder_layers) * (BlockValues(spec, s) + more) +
                        s.decoder_layers * CrossAttentionValues(spec, s);
  const double ends = 2 * s.d + 2 * s.vocab;  // embedding and last norm; logits, probabilities
  return s.rows * (blocks + ends + LiveGradients(spec, s)) +
         s.layers * s.batch * s.memory * s.d;  // Transformer-XL's memory
}

// A trainer's resident memory before it has a model: the program, LibTorch, gRPC and the spool.
constexpr double kProcessBytes = 130e6;

}  // namespace

int64_t ParameterCount(const RunSpec& spec) {
  const int64_t block =
      AttentionParameters(spec) + FeedForwardParameters(spec) + WiringParameters(spec);
  int64_t count = EndParameters(spec) + spec.layers() * block + FirstBlockExtra(spec);
  if (spec.model() == "encdec") {
    const int64_t cross = CrossAttentionParameters(spec) + NormParameters(spec, spec.d_model());
    count += spec.decoder_layers() * (block + cross);
  }
  return count;
}

double FlopsPerStep(const RunSpec& spec) {
  const Sizes s(spec);
  const double ffn = FeedForwardProducts(spec, s);
  double products =
      s.layers * (AttentionProducts(spec, s, spec.model() != "encdec" && spec.causal()) + ffn) +
      s.d * s.vocab;
  products +=
      s.decoder_layers * (AttentionProducts(spec, s, true) + CrossAttentionProducts(s) + ffn);
  return 2 * 3 * products * s.rows * static_cast<double>(spec.accumulate());
}

double MemoryBytes(const RunSpec& spec) {
  const Sizes s(spec);
  // In units of the parameters: weights, gradients of each thread, moments, and what diagnosing
  // keeps of the weights before an update.
  const auto threads = static_cast<double>(std::min(spec.threads(), spec.batch_size()));
  double copies = 1 + threads;
  copies += spec.optimizer() == "sgd" ? 1 : 2;
  if (spec.diagnose_every() > 0) copies += 1;
  if (spec.probe_every() > 0) copies += 1;
  if (spec.precision() == "bf16") copies += threads;  // each rounds the weights for itself
  return kProcessBytes +
         4 * (copies * static_cast<double>(ParameterCount(spec)) + StepValues(spec, s, 0));
}

int64_t GpuMemoryBytes(const RunSpec& spec) {
  constexpr double kMargin = 1.1;  // small buffers, and values that the formula leaves out
  const Sizes s(spec);
  const double copies = spec.optimizer() == "sgd" ? 3 : 4;  // weights, gradients, moments
  // Its kernels keep the gradients of the attention's scores, each layer its own.
  const double scores =
      spec.attention() == "uniform" ? 0 : static_cast<double>(spec.heads()) * (s.time + s.memory);
  const double arrays =
      copies * static_cast<double>(ParameterCount(spec)) + StepValues(spec, s, scores);
  return kGpuContextBytes + static_cast<int64_t>(kMargin * 4 * arrays);
}

void SetModelSize(const RunSpec& effective, v1::Summary& summary) {
  summary.set_parameter_count(ParameterCount(effective));
  summary.set_flops_per_step(FlopsPerStep(effective));
  summary.set_memory_bytes(MemoryBytes(effective));
}

}  // namespace normlab::domain
