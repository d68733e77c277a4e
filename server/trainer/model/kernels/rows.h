// Work that goes over rows in other ways than one after the other; included only by kernels_isa.cc.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ROWS_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ROWS_H_

#include "server/trainer/model/kernels/norm.h"
#include "server/trainer/model/kernels/vector.h"

namespace normlab::trainer {
namespace {

void EmbedForward(const float* table, const int* tokens, const float* positions, long rows,
                  long time, long width, float* y) {
  for (long r = 0; r < rows; ++r, y += width) {
    const float* input = table + (tokens == nullptr ? r : tokens[r]) * width;
    const float* position = positions == nullptr ? nullptr : positions + r % time * width;
    for (long c = 0; c < width; ++c) y[c] = position == nullptr ? input[c] : input[c] + position[c];
  }
}

void EmbedBackward(const float* dy, const int* tokens, long rows, long time, long width,
                   float* dtable, float* dpositions) {
  for (long r = 0; r < rows; ++r, dy += width) {
    if (dtable != nullptr) {
      float* row = dtable + tokens[r] * width;
      for (long c = 0; c < width; ++c) row[c] += dy[c];
    }
    if (dpositions != nullptr) {
      float* row = dpositions + r % time * width;
      for (long c = 0; c < width; ++c) row[c] += dy[c];
    }
  }
}

void RmsNormGroupsForward(const float* x, const float* gain, float epsilon, long rows, long stride,
                          long groups, long width, float* y, float* inverse_rms) {
  for (long r = 0; r < rows; ++r) {
    RmsNormForward(x + r * stride, gain, epsilon, groups, width, y + r * stride,
                   inverse_rms + r * groups);
  }
}

void RmsNormGroupsBackward(const float* x, const float* gain, const float* inverse_rms,
                           const float* dy, long rows, long stride, long groups, long width,
                           bool accumulate, float* dx, float* dgain) {
  for (long r = 0; r < rows; ++r) {
    RmsNormBackward(x + r * stride, gain, inverse_rms + r * groups, dy + r * stride, groups, width,
                    accumulate, dx + r * stride, dgain);
  }
}

void CopyColumns(const float* a, long rows, long stride, long width, bool accumulate, float* out) {
  for (long r = 0; r < rows; ++r, a += stride, out += stride) {
    for (long c = 0; c < width; ++c) out[c] = accumulate ? out[c] + a[c] : a[c];
  }
}

void Spread(const float* scales, long groups, long width, float* out) {
  for (long c = 0; c < width; ++c) out[c] = scales[c / (width / groups)];
}

void AddGroupSums(const float* columns, long groups, long width, float* sums) {
  for (long c = 0; c < width; ++c) sums[c / (width / groups)] += columns[c];
}

void Rotate(const float* x, const float* cosines, const float* sines, float direction, long rows,
            long time, long width, long pairs, bool accumulate, float* y) {
  for (long r = 0; r < rows; ++r, x += 3 * width, y += 3 * width) {
    const long first = r % time * pairs;
    for (long c = 0; c < 2 * width; c += 2) {  // q, then k
      const float cosine = cosines[first + c / 2 % pairs];
      const float sine = direction * sines[first + c / 2 % pairs];
      const float even = x[c] * cosine - x[c + 1] * sine;
      const float odd = x[c] * sine + x[c + 1] * cosine;
      y[c] = accumulate ? y[c] + even : even;
      y[c + 1] = accumulate ? y[c + 1] + odd : odd;
    }
    for (long c = 2 * width; c < 3 * width; ++c) y[c] = accumulate ? y[c] + x[c] : x[c];
  }
}

// With running sums both ways cost one pass.
void MeanForward(const float* x, long batch, long time, long width, bool causal, float* y) {
  for (long b = 0; b < batch; ++b, x += time * width, y += time * width) {
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      Vector sum = {};
      for (long t = 0; t < time && !causal; ++t) sum += LoadPart(x + t * width + c, left);
      for (long t = 0; t < time; ++t) {
        if (causal) sum += LoadPart(x + t * width + c, left);
        const float share = 1.0f / static_cast<float>(causal ? t + 1 : time);
        StorePart(y + t * width + c, sum * share, left);
      }
    }
  }
}

// Causal, dx_j is the sum over t >= j of dy_t / (t + 1).
void MeanBackward(const float* dy, long batch, long time, long width, bool causal, bool accumulate,
                  float* dx) {
  for (long b = 0; b < batch; ++b, dy += time * width, dx += time * width) {
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      Vector sum = {};
      for (long t = 0; t < time && !causal; ++t) sum += LoadPart(dy + t * width + c, left);
      for (long t = time - 1; t >= 0; --t) {
        const float share = 1.0f / static_cast<float>(causal ? t + 1 : time);
        if (causal) sum += LoadPart(dy + t * width + c, left) * share;
        Vector result = causal ? sum : sum * share;
        if (accumulate) result += LoadPart(dx + t * width + c, left);
        StorePart(dx + t * width + c, result, left);
      }
    }
  }
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_ROWS_H_
