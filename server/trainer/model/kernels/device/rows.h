// Embedding, rotary positions and means.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ROWS_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ROWS_H_

#include "server/trainer/model/kernels/device/elementwise.h"

namespace normlab::trainer {
namespace {

void EmbedForward(const float* table, const int* tokens, const float* positions, long rows,
                  long time, long width, float* y) {
  ForEach(rows * width, [=] NORMLAB_DEVICE(long i) {
    const long r = i / width;
    const long c = i % width;
    const float input = table[(tokens == nullptr ? r : tokens[r]) * width + c];
    y[i] = positions == nullptr ? input : input + positions[r % time * width + c];
  });
}

// The first row with a token adds up all rows with it, in order: no two write to the same place.
void AddTokenGradients(const float* dy, const int* tokens, long rows, long width, float* dtable) {
  ForEachRow(rows, [=] NORMLAB_DEVICE(const Lanes& lanes, long r) {
    const int token = tokens[r];
    for (long earlier = 0; earlier < r; ++earlier) {
      if (tokens[earlier] == token) return;  // all lanes alike
    }
    for (long other = r; other < rows; ++other) {
      if (tokens[other] != token) continue;
      for (long c = lanes.lane; c < width; c += Lanes::count) {
        dtable[token * width + c] += dy[other * width + c];
      }
    }
  });
}

void EmbedBackward(const float* dy, const int* tokens, long rows, long time, long width,
                   float* dtable, float* dpositions) {
  if (dtable != nullptr) AddTokenGradients(dy, tokens, rows, width, dtable);
  if (dpositions == nullptr) return;
  // As `rows / time` rows, each a whole sequence.
  AddColumnSums(dy, rows / time, time * width, dpositions);
}

void CopyColumns(const float* a, long rows, long stride, long width, bool accumulate, float* out) {
  ForEach(rows * width, [=] NORMLAB_DEVICE(long i) {
    const long at = i / width * stride + i % width;
    Put(out + at, a[at], accumulate);
  });
}

void Rotate(const float* x, const float* cosines, const float* sines, float direction, long rows,
            long time, long width, long pairs, bool accumulate, float* y) {
  const long row_pairs = 3 * width / 2;  // width is even: heads are
  ForEach(rows * row_pairs, [=] NORMLAB_DEVICE(long i) {
    const long r = i / row_pairs;
    const long c = i % row_pairs * 2;
    const float* from = x + r * 3 * width + c;
    float* to = y + r * 3 * width + c;
    float cosine = 1;
    float sine = 0;
    if (c < 2 * width) {  // q and k; v stays
      const long angle = r % time * pairs + c / 2 % pairs;
      cosine = cosines[angle];
      sine = direction * sines[angle];
    }
    const float even = from[0];
    const float odd = from[1];
    Put(to, even * cosine - odd * sine, accumulate);
    Put(to + 1, even * sine + odd * cosine, accumulate);
  });
}

// One column of one sequence each.
void MeanForward(const float* x, long batch, long time, long width, bool causal, float* y) {
  ForEach(batch * width, [=] NORMLAB_DEVICE(long i) {
    const long first = i / width * time * width + i % width;
    float sum = 0;
    for (long t = 0; t < time && !causal; ++t) sum += x[first + t * width];
    for (long t = 0; t < time; ++t) {
      if (causal) sum += x[first + t * width];
      y[first + t * width] = sum * (1.0f / static_cast<float>(causal ? t + 1 : time));
    }
  });
}

void MeanBackward(const float* dy, long batch, long time, long width, bool causal, bool accumulate,
                  float* dx) {
  ForEach(batch * width, [=] NORMLAB_DEVICE(long i) {
    const long first = i / width * time * width + i % width;
    float sum = 0;
    for (long t = 0; t < time && !causal; ++t) sum += dy[first + t * width];
    for (long t = time - 1; t >= 0; --t) {
      const float share = 1.0f / static_cast<float>(causal ? t + 1 : time);
      if (causal) sum += dy[first + t * width] * share;
      Put(dx + first + t * width, causal ? sum : sum * share, accumulate);
    }
  });
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ROWS_H_
