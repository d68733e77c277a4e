// Norms over rows. Included only by the kernel sources.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_NORM_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_NORM_H_

#include "server/trainer/model/kernels/vector.h"

namespace normlab::trainer {
namespace {

float RowSum(const float* x, long width) {
  Vector sum = {};
  for (long c = 0; c < width; c += kLanes) sum += LoadPart(x + c, width - c);
  return Sum(sum);
}

// Sum of (x - centre)^2 over a row.
float RowSquares(const float* x, float centre, long width) {
  Vector sum = {};
  for (long c = 0; c < width; c += kLanes) {
    const Vector d = KeepFirst(LoadPart(x + c, width - c) - centre, width - c, Vector{});
    sum += d * d;
  }
  return Sum(sum);
}

void LayerNormForward(const float* x, const float* gain, const float* bias, float epsilon,
                      long rows, long width, float* y, float* mean, float* inverse_sd) {
  const float n = static_cast<float>(width);
  for (long r = 0; r < rows; ++r, x += width, y += width) {
    mean[r] = RowSum(x, width) / n;
    inverse_sd[r] = 1.0f / __builtin_sqrtf(RowSquares(x, mean[r], width) / n + epsilon);
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      const Vector normalised = (LoadPart(x + c, left) - mean[r]) * inverse_sd[r];
      StorePart(y + c, normalised * LoadPart(gain + c, left) + LoadPart(bias + c, left), left);
    }
  }
}

// With h = (x - mean) / sd and g = gain * dy: dx = (g - mean(g) - h * mean(g * h)) / sd.
void LayerNormBackward(const float* x, const float* gain, const float* mean,
                       const float* inverse_sd, const float* dy, long rows, long width,
                       bool accumulate, float* dx, float* dgain, float* dbias) {
  const float n = static_cast<float>(width);
  for (long r = 0; r < rows; ++r, x += width, dy += width, dx += width) {
    Vector g_sum = {};
    Vector gh_sum = {};
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      const Vector h = (LoadPart(x + c, left) - mean[r]) * inverse_sd[r];
      const Vector d = LoadPart(dy + c, left);
      StorePart(dgain + c, LoadPart(dgain + c, left) + d * h, left);
      StorePart(dbias + c, LoadPart(dbias + c, left) + d, left);
      const Vector g = d * LoadPart(gain + c, left);
      g_sum += g;
      gh_sum += g * h;
    }
    const float g_mean = Sum(g_sum) / n;
    const float gh_mean = Sum(gh_sum) / n;
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      const Vector h = (LoadPart(x + c, left) - mean[r]) * inverse_sd[r];
      const Vector g = LoadPart(dy + c, left) * LoadPart(gain + c, left);
      Vector result = (g - g_mean - h * gh_mean) * inverse_sd[r];
      if (accumulate) result += LoadPart(dx + c, left);
      StorePart(dx + c, result, left);
    }
  }
}

void RmsNormForward(const float* x, const float* gain, float epsilon, long rows, long width,
                    float* y, float* inverse_rms) {
  const float n = static_cast<float>(width);
  for (long r = 0; r < rows; ++r, x += width, y += width) {
    inverse_rms[r] = 1.0f / __builtin_sqrtf(RowSquares(x, 0.0f, width) / n + epsilon);
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      StorePart(y + c, LoadPart(x + c, left) * inverse_rms[r] * LoadPart(gain + c, left), left);
    }
  }
}

// With h = x / rms and g = gain * dy: dx = (g - h * mean(g * h)) / rms.
void RmsNormBackward(const float* x, const float* gain, const float* inverse_rms, const float* dy,
                     long rows, long width, bool accumulate, float* dx, float* dgain) {
  const float n = static_cast<float>(width);
  for (long r = 0; r < rows; ++r, x += width, dy += width, dx += width) {
    Vector gh_sum = {};
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      const Vector dh = LoadPart(dy + c, left) * (LoadPart(x + c, left) * inverse_rms[r]);
      StorePart(dgain + c, LoadPart(dgain + c, left) + dh, left);
      gh_sum += dh * LoadPart(gain + c, left);
    }
    const float gh_mean = Sum(gh_sum) / n;
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      const Vector h = LoadPart(x + c, left) * inverse_rms[r];
      const Vector g = LoadPart(dy + c, left) * LoadPart(gain + c, left);
      Vector result = (g - h * gh_mean) * inverse_rms[r];
      if (accumulate) result += LoadPart(dx + c, left);
      StorePart(dx + c, result, left);
    }
  }
}

void DyTForward(const float* x, const float* alpha_pointer, const float* gain, const float* bias,
                long rows, long width, float* y) {
  const float alpha = *alpha_pointer;
  for (long r = 0; r < rows; ++r, x += width, y += width) {
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      const Vector t = Tanh(LoadPart(x + c, left) * alpha);
      StorePart(y + c, t * LoadPart(gain + c, left) + LoadPart(bias + c, left), left);
    }
  }
}

// With t = tanh(alpha x) and g = gain * dy * (1 - t^2): dx = alpha g, dalpha = sum(g x).
void DyTBackward(const float* x, const float* alpha_pointer, const float* gain, const float* dy,
                 long rows, long width, bool accumulate, float* dx, float* dalpha, float* dgain,
                 float* dbias) {
  const float alpha = *alpha_pointer;
  for (long r = 0; r < rows; ++r, x += width, dy += width, dx += width) {
    Vector gx_sum = {};
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      const Vector v = LoadPart(x + c, left);
      const Vector t = Tanh(v * alpha);
      const Vector d = LoadPart(dy + c, left);
      StorePart(dgain + c, LoadPart(dgain + c, left) + d * t, left);
      StorePart(dbias + c, LoadPart(dbias + c, left) + d, left);
      const Vector g = d * LoadPart(gain + c, left) * (1.0f - t * t);
      gx_sum += g * v;
      Vector result = g * alpha;
      if (accumulate) result += LoadPart(dx + c, left);
      StorePart(dx + c, result, left);
    }
    *dalpha += Sum(gx_sum);
  }
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_NORM_H_
