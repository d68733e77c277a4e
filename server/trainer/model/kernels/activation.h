// Activation kernels; included only by kernels_isa.cc.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ACTIVATION_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ACTIVATION_H_

#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/kernels/vector.h"

namespace normlab::trainer {
namespace {

// --- ReLU ----------------------------------------------------------------------------------------

// Written so that a comparison with NaN keeps it.
void ReluForward(const float* x, long count, float* y) {
  for (long i = 0; i < count; i += kLanes) {
    const Vector v = LoadPart(x + i, count - i);
    StorePart(y + i, v <= 0.0f ? Vector{} : v, count - i);
  }
}

void ReluBackward(const float* x, const float* dy, long count, bool accumulate, float* dx) {
  for (long i = 0; i < count; i += kLanes) {
    const long left = count - i;
    Vector result = LoadPart(x + i, left) <= 0.0f ? Vector{} : LoadPart(dy + i, left);
    if (accumulate) result += LoadPart(dx + i, left);
    StorePart(dx + i, result, left);
  }
}

// --- GELU ----------------------------------------------------------------------------------------

constexpr float kGeluScale = 0.7978845608f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

void GeluTanhForward(const float* x, long count, float* y) {
  for (long i = 0; i < count; i += kLanes) {
    const Vector v = LoadPart(x + i, count - i);
    const Vector t = Tanh((v * v * kGeluCubic + 1.0f) * v * kGeluScale);
    StorePart(y + i, v * 0.5f * (t + 1.0f), count - i);
  }
}

void GeluTanhBackward(const float* x, const float* dy, long count, bool accumulate, float* dx) {
  for (long i = 0; i < count; i += kLanes) {
    const long left = count - i;
    const Vector v = LoadPart(x + i, left);
    const Vector square = v * v;
    const Vector t = Tanh((square * kGeluCubic + 1.0f) * v * kGeluScale);
    const Vector inner = (square * (3.0f * kGeluCubic) + 1.0f) * kGeluScale;
    const Vector slope = (t + 1.0f) * 0.5f + v * 0.5f * (1.0f - t * t) * inner;
    Vector result = LoadPart(dy + i, left) * slope;
    if (accumulate) result += LoadPart(dx + i, left);
    StorePart(dx + i, result, left);
  }
}

// The normal distribution function, and e^(-x^2/2), without which it has no use here.
struct Normal {
  Vector cumulative;
  Vector bell;
};

// The tail beyond a = |x| is bell(a) m(a), where m falls smoothly from 1/2 like 1/a: a minimax
// polynomial in t = 3 / (3 + a), off by 5e-8 of its value. Both tails keep their relative accuracy.
NORMLAB_KERNEL_INLINE Normal NormalAt(Vector x) {
  Vector a = x < 0.0f ? -x : x;
  a = a > 20.0f ? Broadcast(20.0f) : a;  // infinity would become NaN in t; NaN stays
  const Vector t = 3.0f / (a + 3.0f);
  Vector p = t * -0.02276425063610077f + 0.12959584593772888f;
  p = p * t - 0.2712802290916443f;
  p = p * t + 0.21895702183246613f;
  p = p * t - 0.05337296798825264f;
  p = p * t + 0.11991671472787857f;
  p = p * t + 0.11241785436868668f;
  p = p * t + 0.13357514142990112f;
  p = p * t + 0.13295488059520721f;
  const Vector bell = Exp(a * a * -0.5f);
  const Vector tail = bell * (p * t);
  return {x < 0.0f ? tail : 1.0f - tail, bell};
}

void GeluForward(const float* x, long count, float* y) {
  for (long i = 0; i < count; i += kLanes) {
    const Vector v = LoadPart(x + i, count - i);
    StorePart(y + i, v * NormalAt(v).cumulative, count - i);
  }
}

void GeluBackward(const float* x, const float* dy, long count, bool accumulate, float* dx) {
  constexpr float kDensity = 0.3989422804f;  // 1 / sqrt(2 pi)
  for (long i = 0; i < count; i += kLanes) {
    const long left = count - i;
    const Vector v = LoadPart(x + i, left);
    const Normal normal = NormalAt(v);
    Vector result = LoadPart(dy + i, left) * (normal.cumulative + v * normal.bell * kDensity);
    if (accumulate) result += LoadPart(dx + i, left);
    StorePart(dx + i, result, left);
  }
}

// --- SwiGLU --------------------------------------------------------------------------------------

NORMLAB_KERNEL_INLINE Vector Sigmoid(Vector x) { return 1.0f / (Exp(-x) + 1.0f); }

// A row of x is a, then b, `width` each.
void SwigluForward(const float* x, long rows, long width, float* y) {
  for (long r = 0; r < rows; ++r, x += 2 * width, y += width) {
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      const Vector a = LoadPart(x + c, left);
      StorePart(y + c, a * Sigmoid(a) * LoadPart(x + width + c, left), left);
    }
  }
}

void SwigluBackward(const float* x, const float* dy, long rows, long width, bool accumulate,
                    float* dx) {
  for (long r = 0; r < rows; ++r, x += 2 * width, dx += 2 * width, dy += width) {
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      const Vector a = LoadPart(x + c, left);
      const Vector b = LoadPart(x + width + c, left);
      const Vector d = LoadPart(dy + c, left);
      const Vector s = Sigmoid(a);
      Vector da = d * b * s * (a * (1.0f - s) + 1.0f);
      Vector db = d * a * s;
      if (accumulate) {
        da += LoadPart(dx + c, left);
        db += LoadPart(dx + width + c, left);
      }
      StorePart(dx + c, da, left);
      StorePart(dx + width + c, db, left);
    }
  }
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ACTIVATION_H_
