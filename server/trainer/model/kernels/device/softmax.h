// The output's softmax and the loss.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_SOFTMAX_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_SOFTMAX_H_

#include "server/trainer/model/kernels/device/elementwise.h"

namespace normlab::trainer {
namespace {

void SoftmaxForward(const float* logits, const int* targets, long rows, long classes,
                    float* probabilities, float* row_sum, float* row_target) {
  ForEachRow(rows, [=] NORMLAB_DEVICE(const Lanes& lanes, long r) {
    const float* row = logits + r * classes;
    float* p = probabilities + r * classes;
    float highest = -INFINITY;
    for (long c = lanes.lane; c < classes; c += Lanes::count) highest = fmaxf(highest, row[c]);
    highest = lanes.Max(highest);
    float sum = 0;
    for (long c = lanes.lane; c < classes; c += Lanes::count) {
      p[c] = expf(row[c] - highest);
      sum += p[c];
    }
    sum = lanes.Sum(sum);
    // Each lane reads back only what it wrote.
    for (long c = lanes.lane; c < classes; c += Lanes::count) p[c] *= 1.0f / sum;
    if (lanes.lane == 0) {
      row_sum[r] = sum;
      row_target[r] = targets[r] < 0 ? 0.0f : row[targets[r]] - highest;
    }
  });
}

void SumLosses(const float* row_sum, const float* row_target, const int* targets, long rows,
               double* sum) {
  TotalOf(
      rows,
      [=] NORMLAB_DEVICE(long r) {
        if (targets[r] < 0) return 0.0;
        return log(static_cast<double>(row_sum[r])) - static_cast<double>(row_target[r]);
      },
      [=] NORMLAB_DEVICE(double total) { *sum = total; });
}

void SoftmaxBackward(const float* probabilities, const int* targets, long rows, long classes,
                     const float* scale, bool accumulate, float* dlogits) {
  ForEach(rows * classes, [=] NORMLAB_DEVICE(long i) {
    const int target = targets[i / classes];
    const float hit = target == i % classes ? 1.0f : 0.0f;
    Put(dlogits + i, target < 0 ? 0.0f : (probabilities[i] - hit) * *scale, accumulate);
  });
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_SOFTMAX_H_
