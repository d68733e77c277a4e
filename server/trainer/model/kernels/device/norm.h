// Norms; the formulas are in kernels.h.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_NORM_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_NORM_H_

#include "server/trainer/model/kernels/device/elementwise.h"

namespace normlab::trainer {
namespace {

void LayerNormForward(const float* x, const float* gain, const float* bias, float epsilon,
                      long rows, long width, float* y, float* mean, float* inverse_sd) {
  ForEachRow(rows, [=] NORMLAB_DEVICE(const Lanes& lanes, long r) {
    const float* row = x + r * width;
    float sum = 0;
    for (long c = lanes.lane; c < width; c += Lanes::count) sum += row[c];
    const float m = lanes.Sum(sum) / static_cast<float>(width);
    float squares = 0;  // of the centred row, which survives a large offset
    for (long c = lanes.lane; c < width; c += Lanes::count) {
      const float centred = row[c] - m;
      squares += centred * centred;
    }
    const float variance = lanes.Sum(squares) / static_cast<float>(width);
    const float inverse = 1.0f / sqrtf(variance + epsilon);
    for (long c = lanes.lane; c < width; c += Lanes::count) {
      y[r * width + c] = (row[c] - m) * inverse * gain[c] + bias[c];
    }
    if (lanes.lane == 0) {
      mean[r] = m;
      inverse_sd[r] = inverse;
    }
  });
}

// With h = (x - mean) / sd and g = gain * dy: dx = (g - mean(g) - h mean(g h)) / sd.
void LayerNormBackward(const float* x, const float* gain, const float* mean,
                       const float* inverse_sd, const float* dy, long rows, long width,
                       bool accumulate, float* dx, float* dgain, float* dbias) {
  ForEachRow(rows, [=] NORMLAB_DEVICE(const Lanes& lanes, long r) {
    const float* row = x + r * width;
    const float* d = dy + r * width;
    float g_sum = 0;
    float gh_sum = 0;
    for (long c = lanes.lane; c < width; c += Lanes::count) {
      const float g = gain[c] * d[c];
      g_sum += g;
      gh_sum += g * ((row[c] - mean[r]) * inverse_sd[r]);
    }
    const float g_mean = lanes.Sum(g_sum) / static_cast<float>(width);
    const float gh_mean = lanes.Sum(gh_sum) / static_cast<float>(width);
    for (long c = lanes.lane; c < width; c += Lanes::count) {
      const float h = (row[c] - mean[r]) * inverse_sd[r];
      Put(dx + r * width + c, (gain[c] * d[c] - g_mean - h * gh_mean) * inverse_sd[r], accumulate);
    }
  });
  AddColumnSumsOf(
      rows, width,
      [=] NORMLAB_DEVICE(long r, long c) {
        return dy[r * width + c] * ((x[r * width + c] - mean[r]) * inverse_sd[r]);
      },
      dgain);
  AddColumnSums(dy, rows, width, dbias);
}

void RmsNormGroupsForward(const float* x, const float* gain, float epsilon, long rows, long stride,
                          long groups, long width, float* y, float* inverse_rms) {
  ForEachRow(rows * groups, [=] NORMLAB_DEVICE(const Lanes& lanes, long i) {
    const long first = i / groups * stride + i % groups * width;
    float squares = 0;
    for (long c = lanes.lane; c < width; c += Lanes::count) squares += x[first + c] * x[first + c];
    const float mean = lanes.Sum(squares) / static_cast<float>(width);
    const float inverse = 1.0f / sqrtf(mean + epsilon);
    for (long c = lanes.lane; c < width; c += Lanes::count) {
      y[first + c] = x[first + c] * inverse * gain[c];
    }
    if (lanes.lane == 0) inverse_rms[i] = inverse;
  });
}

// With h = x / rms and g = gain * dy: dx = (g - h mean(g h)) / rms.
void RmsNormGroupsBackward(const float* x, const float* gain, const float* inverse_rms,
                           const float* dy, long rows, long stride, long groups, long width,
                           bool accumulate, float* dx, float* dgain) {
  ForEachRow(rows * groups, [=] NORMLAB_DEVICE(const Lanes& lanes, long i) {
    const long first = i / groups * stride + i % groups * width;
    const float inverse = inverse_rms[i];
    float gh_sum = 0;
    for (long c = lanes.lane; c < width; c += Lanes::count) {
      gh_sum += gain[c] * dy[first + c] * (x[first + c] * inverse);
    }
    const float gh_mean = lanes.Sum(gh_sum) / static_cast<float>(width);
    for (long c = lanes.lane; c < width; c += Lanes::count) {
      const float h = x[first + c] * inverse;
      Put(dx + first + c, (gain[c] * dy[first + c] - h * gh_mean) * inverse, accumulate);
    }
  });
  AddColumnSumsOf(
      rows * groups, width,
      [=] NORMLAB_DEVICE(long i, long c) {
        const long at = i / groups * stride + i % groups * width + c;
        return dy[at] * (x[at] * inverse_rms[i]);
      },
      dgain);
}

void RmsNormForward(const float* x, const float* gain, float epsilon, long rows, long width,
                    float* y, float* inverse_rms) {
  RmsNormGroupsForward(x, gain, epsilon, rows, width, 1, width, y, inverse_rms);
}

void RmsNormBackward(const float* x, const float* gain, const float* inverse_rms, const float* dy,
                     long rows, long width, bool accumulate, float* dx, float* dgain) {
  RmsNormGroupsBackward(x, gain, inverse_rms, dy, rows, width, 1, width, accumulate, dx, dgain);
}

void DyTForward(const float* x, const float* alpha, const float* gain, const float* bias, long rows,
                long width, float* y) {
  ForEach(rows * width, [=] NORMLAB_DEVICE(long i) {
    y[i] = tanhf(*alpha * x[i]) * gain[i % width] + bias[i % width];
  });
}

// With t = tanh(alpha x) and g = gain * dy * (1 - t^2): dx = alpha g, dalpha = sum(g x).
void DyTBackward(const float* x, const float* alpha, const float* gain, const float* dy, long rows,
                 long width, bool accumulate, float* dx, float* dalpha, float* dgain,
                 float* dbias) {
  TotalOf(
      rows * width,
      [=] NORMLAB_DEVICE(long i) {
        const float t = tanhf(*alpha * x[i]);
        return static_cast<double>(gain[i % width] * dy[i] * (1.0f - t * t) * x[i]);
      },
      [=] NORMLAB_DEVICE(double total) { *dalpha += static_cast<float>(total); });
  AddColumnSumsOf(
      rows, width,
      [=] NORMLAB_DEVICE(long r, long c) {
        return dy[r * width + c] * tanhf(*alpha * x[r * width + c]);
      },
      dgain);
  AddColumnSums(dy, rows, width, dbias);
  ForEach(rows * width, [=] NORMLAB_DEVICE(long i) {
    const float t = tanhf(*alpha * x[i]);
    Put(dx + i, *alpha * gain[i % width] * dy[i] * (1.0f - t * t), accumulate);
  });
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_NORM_H_
