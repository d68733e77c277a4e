// Softmax of single rows, and rounding to bfloat16; included only by kernels_isa.cc.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_SOFTMAX_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_SOFTMAX_H_

#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/kernels/vector.h"

namespace normlab::trainer {
namespace {

void SoftmaxOfRow(float scale, long count, float* row) {
  Vector maximum = Broadcast(-__builtin_inff());
  for (long j = 0; j < count; j += kLanes) {
    const Vector x = KeepFirst(LoadPart(row + j, count - j) * scale, count - j, maximum);
    maximum = x > maximum ? x : maximum;
  }
  const float highest = Maximum(maximum);
  Vector total = {};
  for (long j = 0; j < count; j += kLanes) {
    const long left = count - j;
    const Vector e = KeepFirst(Exp(LoadPart(row + j, left) * scale - highest), left, Vector{});
    total += e;
    StorePart(row + j, e, left);
  }
  const float inverse = 1.0f / Sum(total);
  for (long j = 0; j < count; ++j) row[j] *= inverse;
}

void SoftmaxGradientOfRow(const float* p, float scale, long count, float* gradient) {
  Vector dot = {};
  for (long j = 0; j < count; j += kLanes) {
    dot += LoadPart(p + j, count - j) * LoadPart(gradient + j, count - j);
  }
  const float mean = Sum(dot);
  for (long j = 0; j < count; ++j) gradient[j] = p[j] * (gradient[j] - mean) * scale;
}

// Round to nearest, ties to even: adds half of the last kept place, or a bit less where that place
// is even. A NaN is made quiet instead, because rounding could carry it over into infinity.
void RoundToBfloat16(const float* x, long count, float* y) {
  for (long i = 0; i < count; i += kLanes) {
    const Vector v = LoadPart(x + i, count - i);
    const IntVector bits = reinterpret_cast<IntVector>(v);
    const IntVector rounded = bits + 0x7FFF + ((bits >> 16) & 1);
    const IntVector quiet = bits | 0x00400000;
    const IntVector result = (v == v ? rounded : quiet) & static_cast<int>(0xFFFF0000u);
    StorePart(y + i, reinterpret_cast<Vector>(result), count - i);
  }
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_SOFTMAX_H_
