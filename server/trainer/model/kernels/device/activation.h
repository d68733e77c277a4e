// Activations; the formulas are in kernels.h.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ACTIVATION_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ACTIVATION_H_

#include "server/trainer/model/kernels/device/elementwise.h"

namespace normlab::trainer {
namespace {

// Written so that NaN stays NaN.
void ReluForward(const float* x, long count, float* y) {
  ForEach(count, [=] NORMLAB_DEVICE(long i) { y[i] = x[i] <= 0.0f ? 0.0f : x[i]; });
}

void ReluBackward(const float* x, const float* dy, long count, bool accumulate, float* dx) {
  ForEach(count,
          [=] NORMLAB_DEVICE(long i) { Put(dx + i, x[i] <= 0.0f ? 0.0f : dy[i], accumulate); });
}

// P(X <= x) for a normal X; by erfc both tails keep their relative accuracy.
NORMLAB_DEVICE inline float NormalCumulative(float x) {
  constexpr float kInverseRootTwo = 0.7071067812f;
  return 0.5f * erfcf(-x * kInverseRootTwo);
}

void GeluForward(const float* x, long count, float* y) {
  ForEach(count, [=] NORMLAB_DEVICE(long i) { y[i] = x[i] * NormalCumulative(x[i]); });
}

void GeluBackward(const float* x, const float* dy, long count, bool accumulate, float* dx) {
  constexpr float kDensity = 0.3989422804f;  // 1 / sqrt(2 pi)
  ForEach(count, [=] NORMLAB_DEVICE(long i) {
    const float v = x[i];
    const float slope = NormalCumulative(v) + v * kDensity * expf(-0.5f * v * v);
    Put(dx + i, dy[i] * slope, accumulate);
  });
}

constexpr float kGeluScale = 0.7978845608f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

void GeluTanhForward(const float* x, long count, float* y) {
  ForEach(count, [=] NORMLAB_DEVICE(long i) {
    const float v = x[i];
    y[i] = 0.5f * v * (1.0f + tanhf(kGeluScale * v * (1.0f + kGeluCubic * v * v)));
  });
}

void GeluTanhBackward(const float* x, const float* dy, long count, bool accumulate, float* dx) {
  ForEach(count, [=] NORMLAB_DEVICE(long i) {
    const float v = x[i];
    const float t = tanhf(kGeluScale * v * (1.0f + kGeluCubic * v * v));
    const float inner = kGeluScale * (1.0f + 3.0f * kGeluCubic * v * v);
    const float slope = 0.5f * (1.0f + t) + 0.5f * v * (1.0f - t * t) * inner;
    Put(dx + i, dy[i] * slope, accumulate);
  });
}

NORMLAB_DEVICE inline float Sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// A row of x is a, then b, `width` each.
void SwigluForward(const float* x, long rows, long width, float* y) {
  ForEach(rows * width, [=] NORMLAB_DEVICE(long i) {
    const long at = i / width * 2 * width + i % width;
    y[i] = x[at] * Sigmoid(x[at]) * x[at + width];
  });
}

void SwigluBackward(const float* x, const float* dy, long rows, long width, bool accumulate,
                    float* dx) {
  ForEach(rows * width, [=] NORMLAB_DEVICE(long i) {
    const long at = i / width * 2 * width + i % width;
    const float a = x[at];
    const float b = x[at + width];
    const float s = Sigmoid(a);
    Put(dx + at, dy[i] * b * s * (1.0f + a * (1.0f - s)), accumulate);
    Put(dx + at + width, dy[i] * a * s, accumulate);
  });
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ACTIVATION_H_
