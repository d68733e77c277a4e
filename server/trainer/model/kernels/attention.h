// Attention kernels; included only by kernels_isa.cc.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ATTENTION_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ATTENTION_H_

#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/kernels/vector.h"

namespace normlab::trainer {
namespace {

// Rows that one tile computes together; each keeps one or two vectors of sums in registers.
constexpr long kTileRows = kLanes == 16 ? 8 : 4;

// A matrix that a product reads one element at a time: element (i, k) is data[i * row + k *
// column].
struct Strided {
  const float* data;
  long row;
  long column;
};

// c[i][0..N vectors) = sum over k < depth of a(i, k) * b[k][...], for R rows.
template <long R, long N>
NORMLAB_KERNEL_INLINE void Tile(long depth, Strided a, const float* b, long b_stride, float* c,
                                long c_stride) {
  Vector sums[R][N];
  for (long i = 0; i < R; ++i) {
    for (long j = 0; j < N; ++j) sums[i][j] = Vector{};
  }
  for (long k = 0; k < depth; ++k) {
    Vector row[N];
    for (long j = 0; j < N; ++j) row[j] = Load(b + k * b_stride + j * kLanes);
#pragma GCC unroll 8
    for (long i = 0; i < R; ++i) {
      const Vector factor = Broadcast(a.data[i * a.row + k * a.column]);
      for (long j = 0; j < N; ++j) sums[i][j] += factor * row[j];
    }
  }
  for (long i = 0; i < R; ++i) {
    for (long j = 0; j < N; ++j) Store(c + i * c_stride + j * kLanes, sums[i][j]);
  }
}

// The same for any number of rows up to kTileRows and any number of vectors. Inlined, because a
// `Strided` on the stack costs more than the product of a small head.
NORMLAB_KERNEL_INLINE void Product(long rows, long vectors, long depth, Strided a, const float* b,
                                   long b_stride, float* c, long c_stride) {
  long j = 0;
  for (; j + 2 <= vectors && rows == kTileRows; j += 2) {
    Tile<kTileRows, 2>(depth, a, b + j * kLanes, b_stride, c + j * kLanes, c_stride);
  }
  for (; j < vectors; ++j) {
    if (rows == kTileRows) {
      Tile<kTileRows, 1>(depth, a, b + j * kLanes, b_stride, c + j * kLanes, c_stride);
      continue;
    }
    for (long i = 0; i < rows; ++i) {
      const Strided one = {a.data + i * a.row, a.row, a.column};
      Tile<1, 1>(depth, one, b + j * kLanes, b_stride, c + i * c_stride + j * kLanes, c_stride);
    }
  }
}

static inline long RoundUp(long count) { return (count + kLanes - 1) / kLanes * kLanes; }

static inline long Least(long a, long b) { return a < b ? a : b; }

// Rows of one head. Where the head's width is whole vectors they are read and written where they
// lie; else they pass through scratch memory, padded with zeros.
struct Rows {
  float* data;
  long stride;
};

static inline bool FillsVectors(long head_width) { return head_width % kLanes == 0; }

static inline Rows ReadableRows(const float* from, long stride, long time, long head_width,
                                float* scratch) {
  if (FillsVectors(head_width)) return {const_cast<float*>(from), stride};
  const long padded = RoundUp(head_width);
  for (long t = 0; t < time; ++t) {
    for (long c = 0; c < padded; c += kLanes) {
      Store(scratch + t * padded + c, LoadPart(from + t * stride + c, head_width - c));
    }
  }
  return {scratch, padded};
}

// Where a product may write its rows: their final place, unless they are to be added there.
static inline Rows WritableRows(float* to, long stride, long head_width, bool accumulate,
                                float* scratch) {
  if (FillsVectors(head_width) && !accumulate) return {to, stride};
  return {scratch, RoundUp(head_width)};
}

// Brings rows that were written to scratch memory to their final place.
static inline void FinishRows(Rows rows, long time, long head_width, bool accumulate, float* to,
                              long stride) {
  if (rows.data == to) return;
  for (long t = 0; t < time; ++t) {
    for (long c = 0; c < head_width; c += kLanes) {
      float* target = to + t * stride + c;
      Vector value = Load(rows.data + t * rows.stride + c);
      if (accumulate) value += LoadPart(target, head_width - c);
      StorePart(target, value, head_width - c);
    }
  }
}

// The head's rows as columns: [head_width, padded_time].
static inline void TransposeHead(const float* from, long stride, long time, long head_width,
                                 long padded_time, float* to) {
  if (FillsVectors(head_width) && time == padded_time) {
    for (long t = 0; t < time; t += kLanes) {
      for (long c = 0; c < head_width; c += kLanes) {
        TransposeBlock(from + t * stride + c, stride, to + c * padded_time + t, padded_time);
      }
    }
    return;
  }
  for (long c = 0; c < head_width; ++c) {
    for (long t = 0; t < padded_time; ++t) {
      to[c * padded_time + t] = t < time ? from[t * stride + c] : 0.0f;
    }
  }
}

// Softmax of scale * scores over the first `visible` entries; zeros behind, up to `padded`. The
// causal mask is exact: a masked entry would be exp(-1e30) = 0.
static inline void SoftmaxRow(float* row, long visible, long padded, float scale) {
  Vector maximum = Broadcast(-__builtin_inff());
  for (long j = 0; j < visible; j += kLanes) {
    const Vector x = KeepFirst(Load(row + j) * scale, visible - j, maximum);
    maximum = x > maximum ? x : maximum;
  }
  const float highest = Maximum(maximum);
  Vector total = {};
  for (long j = 0; j < visible; j += kLanes) {
    const Vector e = KeepFirst(Exp(Load(row + j) * scale - highest), visible - j, Vector{});
    total += e;
    Store(row + j, e);
  }
  const float inverse = 1.0f / Sum(total);
  for (long j = 0; j < visible; j += kLanes) Store(row + j, Load(row + j) * inverse);
  for (long j = RoundUp(visible); j < padded; j += kLanes) Store(row + j, Vector{});
}

// Sizes of one head, shared by the steps below.
struct HeadShape {
  long time;
  long width;         // of one head
  long padded_width;  // whole vectors
  long padded_time;   // whole vectors
  long stride;        // of probabilities
  bool causal;
  float scale;  // 1 / sqrt(width)

  // How many keys the last of the rows before `end` sees.
  long Visible(long end) const { return causal ? end : time; }
};

static inline HeadShape ShapeOf(long time, long width, long heads, bool causal) {
  const long head_width = width / heads;
  return {time,
          head_width,
          RoundUp(head_width),
          RoundUp(time),
          AttentionStride(time),
          causal,
          1.0f / __builtin_sqrtf(static_cast<float>(head_width))};
}

static inline void HeadForward(const HeadShape& s, const float* q, const float* k, const float* v,
                               long qkv_stride, float* probabilities, float* out, long out_stride,
                               float* scratch) {
  const long head_size = s.padded_time * s.padded_width;
  float* k_transposed = scratch;
  TransposeHead(k, qkv_stride, s.time, s.width, s.padded_time, k_transposed);
  const Rows values = ReadableRows(v, qkv_stride, s.time, s.width, scratch + head_size);
  const Rows result = WritableRows(out, out_stride, s.width, false, scratch + 2 * head_size);
  for (long i = 0; i < s.time; i += kTileRows) {
    const long rows = Least(kTileRows, s.time - i);
    const long visible = s.Visible(i + rows);
    float* p = probabilities + i * s.stride;
    Product(rows, RoundUp(visible) / kLanes, s.width, {q + i * qkv_stride, qkv_stride, 1},
            k_transposed, s.padded_time, p, s.stride);
    for (long r = 0; r < rows; ++r) {
      SoftmaxRow(p + r * s.stride, s.Visible(i + r + 1), s.stride, s.scale);
    }
    Product(rows, s.padded_width / kLanes, visible, {p, s.stride, 1}, values.data, values.stride,
            result.data + i * result.stride, result.stride);
  }
  FinishRows(result, s.time, s.width, false, out, out_stride);
}

// dS = P * (dP - sum(P * dP)) * scale, in place of dP, over one row.
static inline void ScoreGradientRow(const float* p, long visible, long padded, float scale,
                                    float* dp) {
  Vector dot = {};
  for (long j = 0; j < visible; j += kLanes) {
    dot += KeepFirst(Load(p + j) * Load(dp + j), visible - j, Vector{});
  }
  const float mean = Sum(dot);
  for (long j = 0; j < visible; j += kLanes) {
    const Vector ds = Load(p + j) * (Load(dp + j) - mean) * scale;
    Store(dp + j, KeepFirst(ds, visible - j, Vector{}));
  }
  for (long j = RoundUp(visible); j < padded; j += kLanes) Store(dp + j, Vector{});
}

// One head's slices of qkv, or of its gradient.
struct HeadSlices {
  float* q;
  float* k;
  float* v;
};

// dP = dOut V^T; dS from it; dQ = dS K.
static inline void QueryGradient(const HeadShape& s, const HeadSlices& in, long qkv_stride,
                                 const float* p, Rows out_gradient, bool accumulate, float* dq,
                                 float* ds, float* scratch) {
  const long head_size = s.padded_time * s.padded_width;
  float* v_transposed = scratch;
  TransposeHead(in.v, qkv_stride, s.time, s.width, s.padded_time, v_transposed);
  const Rows keys = ReadableRows(in.k, qkv_stride, s.time, s.width, scratch + head_size);
  const Rows result = WritableRows(dq, qkv_stride, s.width, accumulate, scratch + 2 * head_size);
  for (long i = 0; i < s.time; i += kTileRows) {
    const long rows = Least(kTileRows, s.time - i);
    const long visible = s.Visible(i + rows);
    Product(rows, RoundUp(visible) / kLanes, s.width,
            {out_gradient.data + i * out_gradient.stride, out_gradient.stride, 1}, v_transposed,
            s.padded_time, ds + i * s.stride, s.stride);
    for (long r = i; r < i + rows; ++r) {
      ScoreGradientRow(p + r * s.stride, s.Visible(r + 1), s.stride, s.scale, ds + r * s.stride);
    }
    Product(rows, s.padded_width / kLanes, visible, {ds + i * s.stride, s.stride, 1}, keys.data,
            keys.stride, result.data + i * result.stride, result.stride);
  }
  FinishRows(result, s.time, s.width, accumulate, dq, qkv_stride);
}

// to = weights^T rows; a causal key is seen by the rows from its own on.
static inline void KeyGradient(const HeadShape& s, const float* weights, Rows rows, bool accumulate,
                               float* to, long to_stride, float* scratch) {
  const Rows result = WritableRows(to, to_stride, s.width, accumulate, scratch);
  for (long j = 0; j < s.time; j += kTileRows) {
    const long first = s.causal ? j : 0;
    Product(Least(kTileRows, s.time - j), s.padded_width / kLanes, s.time - first,
            {weights + first * s.stride + j, 1, s.stride}, rows.data + first * rows.stride,
            rows.stride, result.data + j * result.stride, result.stride);
  }
  FinishRows(result, s.time, s.width, accumulate, to, to_stride);
}

// dK = dS^T Q and dV = P^T dOut after the queries' gradient.
static inline void HeadBackward(const HeadShape& s, const HeadSlices& in, long qkv_stride,
                                const float* p, const float* out_gradient, long out_stride,
                                bool accumulate, const HeadSlices& gradient, float* scratch) {
  const long head_size = s.padded_time * s.padded_width;
  float* ds = scratch;
  float* rest = ds + s.time * s.stride;
  const Rows out_rows = ReadableRows(out_gradient, out_stride, s.time, s.width, rest);
  const Rows queries = ReadableRows(in.q, qkv_stride, s.time, s.width, rest + head_size);
  rest += 2 * head_size;
  QueryGradient(s, in, qkv_stride, p, out_rows, accumulate, gradient.q, ds, rest);
  KeyGradient(s, ds, queries, accumulate, gradient.k, qkv_stride, rest);
  KeyGradient(s, p, out_rows, accumulate, gradient.v, qkv_stride, rest);
}

static inline void SequenceForward(const float* qkv, long time, long width, long heads, bool causal,
                                   float* probabilities, float* out, float* scratch) {
  const HeadShape s = ShapeOf(time, width, heads, causal);
  for (long h = 0; h < heads; ++h) {
    const float* q = qkv + h * s.width;
    HeadForward(s, q, q + width, q + 2 * width, 3 * width, probabilities + h * time * s.stride,
                out + h * s.width, width, scratch);
  }
}

static inline void SequenceBackward(const float* qkv, const float* probabilities,
                                    const float* out_gradient, long time, long width, long heads,
                                    bool causal, bool accumulate, float* qkv_gradient,
                                    float* scratch) {
  const HeadShape s = ShapeOf(time, width, heads, causal);
  for (long h = 0; h < heads; ++h) {
    float* q = const_cast<float*>(qkv) + h * s.width;
    float* dq = qkv_gradient + h * s.width;
    HeadBackward(s, {q, q + width, q + 2 * width}, 3 * width, probabilities + h * time * s.stride,
                 out_gradient + h * s.width, width, accumulate, {dq, dq + width, dq + 2 * width},
                 scratch);
  }
}

// One sequence after the other uses it.
long AttentionScratchOf(long /*batch*/, long time, long width, long heads) {
  return AttentionScratch(time, width / heads);
}

void AttentionForward(const float* qkv, long batch, long time, long width, long heads, bool causal,
                      float* probabilities, float* out, float* scratch) {
  const long probability_size = heads * time * AttentionStride(time);
  for (long b = 0; b < batch; ++b) {
    SequenceForward(qkv + b * time * 3 * width, time, width, heads, causal,
                    probabilities + b * probability_size, out + b * time * width, scratch);
  }
}

void AttentionBackward(const float* qkv, const float* probabilities, const float* out_gradient,
                       long batch, long time, long width, long heads, bool causal, bool accumulate,
                       float* qkv_gradient, float* scratch) {
  const long probability_size = heads * time * AttentionStride(time);
  for (long b = 0; b < batch; ++b) {
    SequenceBackward(qkv + b * time * 3 * width, probabilities + b * probability_size,
                     out_gradient + b * time * width, time, width, heads, causal, accumulate,
                     qkv_gradient + b * time * 3 * width, scratch);
  }
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ATTENTION_H_
