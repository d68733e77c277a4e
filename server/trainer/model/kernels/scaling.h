// Products with constants and learned scales. Included only by the kernel sources.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_SCALING_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_SCALING_H_

#include "server/trainer/model/kernels/vector.h"

namespace normlab::trainer {
namespace {

void Scale(const float* x, float factor, long count, bool accumulate, float* out) {
  if (accumulate) {
    for (long i = 0; i < count; ++i) out[i] += factor * x[i];
  } else {
    for (long i = 0; i < count; ++i) out[i] = factor * x[i];
  }
}

void ScaleColumns(const float* x, const float* factors, long rows, long width, bool accumulate,
                  float* out) {
  for (long r = 0; r < rows; ++r, x += width, out += width) {
    if (accumulate) {
      for (long c = 0; c < width; ++c) out[c] += factors[c] * x[c];
    } else {
      for (long c = 0; c < width; ++c) out[c] = factors[c] * x[c];
    }
  }
}

void AddColumnProducts(const float* a, const float* b, long rows, long width, float* sums) {
  for (long c = 0; c < width; c += kLanes) {
    const long left = width - c;
    Vector sum = LoadPart(sums + c, left);
    for (long r = 0; r < rows; ++r) {
      sum += LoadPart(a + r * width + c, left) * LoadPart(b + r * width + c, left);
    }
    StorePart(sums + c, sum, left);
  }
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_SCALING_H_
