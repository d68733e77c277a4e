// Compiled once for each instruction set, with NORMLAB_KERNEL_TABLE naming the result. Includes no
// standard header; see kernels.h.
#include "server/trainer/model/kernels/activation.h"
#include "server/trainer/model/kernels/attention.h"
#include "server/trainer/model/kernels/dropout.h"
#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/kernels/norm.h"
#include "server/trainer/model/kernels/product.h"
#include "server/trainer/model/kernels/rows.h"
#include "server/trainer/model/kernels/scaling.h"
#include "server/trainer/model/kernels/softmax.h"
#include "server/trainer/model/kernels/vector.h"

namespace normlab::trainer {
namespace {

// --- Softmax and cross-entropy -------------------------------------------------------------------

void SoftmaxForward(const float* logits, const int* targets, long rows, long classes,
                    float* probabilities, float* row_sum, float* row_target) {
  for (long r = 0; r < rows; ++r, logits += classes, probabilities += classes) {
    Vector maximum = Broadcast(-__builtin_inff());
    for (long c = 0; c < classes; c += kLanes) {
      const Vector x = KeepFirst(LoadPart(logits + c, classes - c), classes - c, maximum);
      maximum = x > maximum ? x : maximum;
    }
    const float highest = Maximum(maximum);
    Vector total = {};
    for (long c = 0; c < classes; c += kLanes) {
      const long left = classes - c;
      const Vector e = KeepFirst(Exp(LoadPart(logits + c, left) - highest), left, Vector{});
      total += e;
      StorePart(probabilities + c, e, left);
    }
    row_sum[r] = Sum(total);
    row_target[r] = targets[r] < 0 ? 0.0f : logits[targets[r]] - highest;
    const float inverse = 1.0f / row_sum[r];
    for (long c = 0; c < classes; ++c) probabilities[c] *= inverse;
  }
}

void SumLosses(const float* row_sum, const float* row_target, const int* targets, long rows,
               double* sum) {
  double loss = 0;
  for (long r = 0; r < rows; ++r) {
    if (targets[r] < 0) continue;
    loss += __builtin_log(static_cast<double>(row_sum[r])) - row_target[r];
  }
  *sum = loss;
}

void SoftmaxBackward(const float* probabilities, const int* targets, long rows, long classes,
                     const float* scale_pointer, bool accumulate, float* dlogits) {
  const float scale = *scale_pointer;
  for (long r = 0; r < rows; ++r, probabilities += classes, dlogits += classes) {
    const bool counted = targets[r] >= 0;
    for (long c = 0; c < classes; c += kLanes) {
      const long left = classes - c;
      Vector result = counted ? LoadPart(probabilities + c, left) * scale : Vector{};
      if (accumulate) result += LoadPart(dlogits + c, left);
      StorePart(dlogits + c, result, left);
    }
    if (counted) dlogits[targets[r]] -= scale;
  }
}

// --- Plain element-wise work ---------------------------------------------------------------------

void Add(const float* a, const float* b, long count, float* out) {
  for (long i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

void Copy(const float* a, long count, bool accumulate, float* out) {
  if (accumulate) {
    for (long i = 0; i < count; ++i) out[i] += a[i];
  } else {
    for (long i = 0; i < count; ++i) out[i] = a[i];
  }
}

void FillRows(const float* bias, long rows, long width, float* out) {
  for (long r = 0; r < rows; ++r, out += width) {
    for (long c = 0; c < width; ++c) out[c] = bias == nullptr ? 0.0f : bias[c];
  }
}

void AddColumnSums(const float* a, long rows, long width, float* sums) {
  for (long c = 0; c < width; c += kLanes) {
    Vector sum = LoadPart(sums + c, width - c);
    for (long r = 0; r < rows; ++r) sum += LoadPart(a + r * width + c, width - c);
    StorePart(sums + c, sum, width - c);
  }
}

double SumOfSquares(const float* a, long count) {
  constexpr long kHalf = kLanes / 2;
  constexpr long kChains = 4;  // independent sums hide the latency of the additions
  DoubleVector sums[kChains] = {};
  long i = 0;
  for (; i + kChains * kHalf <= count; i += kChains * kHalf) {
    for (long k = 0; k < kChains; ++k) {
      const HalfVector x = *reinterpret_cast<const HalfVector*>(a + i + k * kHalf);
      const DoubleVector wide = __builtin_convertvector(x, DoubleVector);
      sums[k] += wide * wide;
    }
  }
  double total = 0;
  for (; i < count; ++i) total += static_cast<double>(a[i]) * a[i];
  for (long k = 0; k < kChains; ++k) {
    for (long lane = 0; lane < kHalf; ++lane) total += sums[k][lane];
  }
  return total;
}

double SumOfSquaredDifferences(const float* a, const float* b, long count) {
  constexpr long kHalf = kLanes / 2;
  DoubleVector sum = {};
  long i = 0;
  for (; i + kHalf <= count; i += kHalf) {
    const HalfVector d =
        *reinterpret_cast<const HalfVector*>(a + i) - *reinterpret_cast<const HalfVector*>(b + i);
    const DoubleVector wide = __builtin_convertvector(d, DoubleVector);
    sum += wide * wide;
  }
  double total = 0;
  for (; i < count; ++i) {
    const double d = a[i] - b[i];
    total += d * d;
  }
  for (long lane = 0; lane < kHalf; ++lane) total += sum[lane];
  return total;
}

float Largest(const float* a, long count) {
  Vector highest = {};
  Vector not_a_number = {};
  for (long i = 0; i < count; i += kLanes) {
    const Vector x = LoadPart(a + i, count - i);
    const Vector magnitude = x < 0.0f ? -x : x;
    highest = magnitude > highest ? magnitude : highest;
    not_a_number = x != x ? x : not_a_number;
  }
  const float nan = Sum(not_a_number);
  return nan != nan ? nan : Maximum(highest);
}

void AdamW(const float* gradients, long count, float rate, float beta1, float beta2, float epsilon,
           float decay, float m_correction, float v_correction, float* parameters, float* m,
           float* v) {
  for (long i = 0; i < count; ++i) {
    const float g = gradients[i];
    m[i] = beta1 * m[i] + (1.0f - beta1) * g;
    v[i] = beta2 * v[i] + (1.0f - beta2) * (g * g);
    const float update = m[i] * m_correction / (__builtin_sqrtf(v[i] * v_correction) + epsilon) +
                         decay * parameters[i];
    parameters[i] -= rate * update;
  }
}

void Exponential(const float* x, long count, float* y) {
  for (long i = 0; i < count; i += kLanes) {
    StorePart(y + i, Exp(LoadPart(x + i, count - i)), count - i);
  }
}

void HyperbolicTangent(const float* x, long count, float* y) {
  for (long i = 0; i < count; i += kLanes) {
    StorePart(y + i, Tanh(LoadPart(x + i, count - i)), count - i);
  }
}

}  // namespace

extern const Kernels NORMLAB_KERNEL_TABLE;
const Kernels NORMLAB_KERNEL_TABLE = {
    .instruction_set = NORMLAB_KERNEL_NAME,
    .matrix_multiply = MatrixMultiply,
    .layer_norm_forward = LayerNormForward,
    .layer_norm_backward = LayerNormBackward,
    .rms_norm_forward = RmsNormForward,
    .rms_norm_backward = RmsNormBackward,
    .dyt_forward = DyTForward,
    .dyt_backward = DyTBackward,
    .relu_forward = ReluForward,
    .relu_backward = ReluBackward,
    .gelu_forward = GeluForward,
    .gelu_backward = GeluBackward,
    .gelu_tanh_forward = GeluTanhForward,
    .gelu_tanh_backward = GeluTanhBackward,
    .swiglu_forward = SwigluForward,
    .swiglu_backward = SwigluBackward,
    .attention_scratch = AttentionScratchOf,
    .attention_forward = AttentionForward,
    .attention_backward = AttentionBackward,
    .softmax_of_row = SoftmaxOfRow,
    .softmax_gradient_of_row = SoftmaxGradientOfRow,
    .round_to_bfloat16 = RoundToBfloat16,
    .philox = Philox,
    .dropout = Dropout,
    .softmax_forward = SoftmaxForward,
    .sum_losses = SumLosses,
    .softmax_backward = SoftmaxBackward,
    .add = Add,
    .copy = Copy,
    .fill_rows = FillRows,
    .add_column_sums = AddColumnSums,
    .scale = Scale,
    .scale_columns = ScaleColumns,
    .add_column_products = AddColumnProducts,
    .embed_forward = EmbedForward,
    .embed_backward = EmbedBackward,
    .rms_norm_groups_forward = RmsNormGroupsForward,
    .rms_norm_groups_backward = RmsNormGroupsBackward,
    .copy_columns = CopyColumns,
    .spread = Spread,
    .add_group_sums = AddGroupSums,
    .rotate = Rotate,
    .mean_forward = MeanForward,
    .mean_backward = MeanBackward,
    .sum_of_squares = SumOfSquares,
    .sum_of_squared_differences = SumOfSquaredDifferences,
    .largest = Largest,
    .adamw = AdamW,
    .exponential = Exponential,
    .hyperbolic_tangent = HyperbolicTangent,
};

}  // namespace normlab::trainer
