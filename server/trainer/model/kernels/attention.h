// Attention kernels; included only by kernels_isa.cc.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ATTENTION_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ATTENTION_H_

#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/kernels/vector.h"

namespace normlab::trainer {
namespace {

// Rows that one tile computes together; each keeps one or two vectors of sums in registers.
constexpr long kTileRows = kLanes == 16 ? 8 : 4;

// A matrix that a product reads one element at a time: element (i, k) is data[i * row + k * column].
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

// The same for any number of rows up to kTileRows and any number of vectors.
static inline void Product(long rows, long vectors, long depth, Strided a, const float* b,
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

// One head's rows of a wider matrix, copied to rows of `padded` floats with zeros behind.
static inline void CopyHead(const float* from, long stride, long time, long head_width, long padded,
                            float* to) {
  for (long t = 0; t < time; ++t) {
    for (long c = 0; c < padded; c += kLanes) {
      Store(to + t * padded + c, LoadPart(from + t * stride + c, head_width - c));
    }
  }
}

// The same transposed: [head_width, padded_time].
static inline void TransposeHead(const float* from, long stride, long time, long head_width,
                                 long padded_time, float* to) {
  for (long c = 0; c < head_width; ++c) {
    for (long t = 0; t < padded_time; ++t) {
      to[c * padded_time + t] = t < time ? from[t * stride + c] : 0.0f;
    }
  }
}

static inline void WriteHead(const float* from, long padded, long time, long head_width,
                             bool accumulate, float* to, long stride) {
  for (long t = 0; t < time; ++t) {
    for (long c = 0; c < head_width; c += kLanes) {
      float* target = to + t * stride + c;
      Vector value = Load(from + t * padded + c);
      if (accumulate) value += LoadPart(target, head_width - c);
      StorePart(target, value, head_width - c);
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
  float scale;        // 1 / sqrt(width)

  // How many keys the last of the rows before `end` sees.
  long Visible(long end) const { return causal ? end : time; }
};

static inline HeadShape ShapeOf(long time, long width, long heads, bool causal) {
  const long head_width = width / heads;
  return {time,           head_width,
          RoundUp(head_width), RoundUp(time),
          AttentionStride(time), causal,
          1.0f / __builtin_sqrtf(static_cast<float>(head_width))};
}

static inline void HeadForward(const HeadShape& s, const float* q, const float* k, const float* v,
                               long qkv_stride, float* probabilities, float* out, long out_stride,
                               float* scratch) {
  float* k_transposed = scratch;
  float* v_copy = k_transposed + s.padded_time * s.padded_width;
  float* result = v_copy + s.padded_time * s.padded_width;
  TransposeHead(k, qkv_stride, s.time, s.width, s.padded_time, k_transposed);
  CopyHead(v, qkv_stride, s.time, s.width, s.padded_width, v_copy);
  for (long i = 0; i < s.time; i += kTileRows) {
    const long rows = Least(kTileRows, s.time - i);
    const long visible = s.Visible(i + rows);
    float* p = probabilities + i * s.stride;
    Product(rows, RoundUp(visible) / kLanes, s.width, {q + i * qkv_stride, qkv_stride, 1},
            k_transposed, s.padded_time, p, s.stride);
    for (long r = 0; r < rows; ++r) {
      SoftmaxRow(p + r * s.stride, s.Visible(i + r + 1), s.stride, s.scale);
    }
    Product(rows, s.padded_width / kLanes, visible, {p, s.stride, 1}, v_copy, s.padded_width,
            result + i * s.padded_width, s.padded_width);
  }
  WriteHead(result, s.padded_width, s.time, s.width, false, out, out_stride);
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

static inline void HeadBackward(const HeadShape& s, const float* q, const float* k, const float* v,
                                long qkv_stride, const float* p, const float* out_gradient,
                                long out_stride, bool accumulate, float* dq, float* dk, float* dv,
                                float* scratch) {
  const long head_size = s.padded_time * s.padded_width;
  float* v_transposed = scratch;
  float* q_copy = v_transposed + head_size;
  float* k_copy = q_copy + head_size;
  float* out_copy = k_copy + head_size;
  float* result = out_copy + head_size;
  float* ds = result + head_size;
  TransposeHead(v, qkv_stride, s.time, s.width, s.padded_time, v_transposed);
  CopyHead(q, qkv_stride, s.time, s.width, s.padded_width, q_copy);
  CopyHead(k, qkv_stride, s.time, s.width, s.padded_width, k_copy);
  CopyHead(out_gradient, out_stride, s.time, s.width, s.padded_width, out_copy);
  const long width_vectors = s.padded_width / kLanes;

  // dP = dOut V^T; dS from it; dQ = dS K.
  for (long i = 0; i < s.time; i += kTileRows) {
    const long rows = Least(kTileRows, s.time - i);
    const long visible = s.Visible(i + rows);
    Product(rows, RoundUp(visible) / kLanes, s.width, {out_copy + i * s.padded_width,
            s.padded_width, 1}, v_transposed, s.padded_time, ds + i * s.stride, s.stride);
    for (long r = i; r < i + rows; ++r) {
      ScoreGradientRow(p + r * s.stride, s.Visible(r + 1), s.stride, s.scale, ds + r * s.stride);
    }
    Product(rows, width_vectors, visible, {ds + i * s.stride, s.stride, 1}, k_copy, s.padded_width,
            result + i * s.padded_width, s.padded_width);
  }
  WriteHead(result, s.padded_width, s.time, s.width, accumulate, dq, qkv_stride);

  // dK = dS^T Q and dV = P^T dOut; a causal key is seen by the rows from its own on.
  const auto transposed_product = [&](const float* weights, const float* rows_of) {
    for (long j = 0; j < s.time; j += kTileRows) {
      const long first = s.causal ? j : 0;
      Product(Least(kTileRows, s.time - j), width_vectors, s.time - first,
              {weights + first * s.stride + j, 1, s.stride}, rows_of + first * s.padded_width,
              s.padded_width, result + j * s.padded_width, s.padded_width);
    }
  };
  transposed_product(ds, q_copy);
  WriteHead(result, s.padded_width, s.time, s.width, accumulate, dk, qkv_stride);
  transposed_product(p, out_copy);
  WriteHead(result, s.padded_width, s.time, s.width, accumulate, dv, qkv_stride);
}

void AttentionForward(const float* qkv, long time, long width, long heads, bool causal,
                      float* probabilities, float* out, float* scratch) {
  const HeadShape s = ShapeOf(time, width, heads, causal);
  for (long h = 0; h < heads; ++h) {
    const float* q = qkv + h * s.width;
    HeadForward(s, q, q + width, q + 2 * width, 3 * width, probabilities + h * time * s.stride,
                out + h * s.width, width, scratch);
  }
}

void AttentionBackward(const float* qkv, const float* probabilities, const float* out_gradient,
                       long time, long width, long heads, bool causal, bool accumulate,
                       float* qkv_gradient, float* scratch) {
  const HeadShape s = ShapeOf(time, width, heads, causal);
  for (long h = 0; h < heads; ++h) {
    const float* q = qkv + h * s.width;
    float* dq = qkv_gradient + h * s.width;
    HeadBackward(s, q, q + width, q + 2 * width, 3 * width, probabilities + h * time * s.stride,
                 out_gradient + h * s.width, width, accumulate, dq, dq + width, dq + 2 * width,
                 scratch);
  }
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ATTENTION_H_
