// Element-wise work, sums of columns, and products for devices without a library.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ELEMENTWISE_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ELEMENTWISE_H_

namespace normlab::trainer {
namespace {

// *out = value, or += where `accumulate`.
NORMLAB_DEVICE inline void Put(float* out, float value, bool accumulate) {
  *out = accumulate ? *out + value : value;
}

void MatrixMultiply(const float* a, long a_row, long a_column, const float* b, long b_row,
                    long b_column, long rows, long columns, long depth, const float* bias,
                    bool accumulate, float* c) {
  ForEach(rows * columns, [=] NORMLAB_DEVICE(long i) {
    const long r = i / columns;
    const long j = i % columns;
    float sum = 0;
    for (long k = 0; k < depth; ++k) {
      sum += a[r * a_row + k * a_column] * b[k * b_row + j * b_column];
    }
    const float start = accumulate ? c[i] : bias == nullptr ? 0.0f : bias[j];
    c[i] = start + sum;
  });
}

void Add(const float* a, const float* b, long count, float* out) {
  ForEach(count, [=] NORMLAB_DEVICE(long i) { out[i] = a[i] + b[i]; });
}

void Copy(const float* a, long count, bool accumulate, float* out) {
  ForEach(count, [=] NORMLAB_DEVICE(long i) { Put(out + i, a[i], accumulate); });
}

void FillRows(const float* bias, long rows, long width, float* out) {
  ForEach(rows * width,
          [=] NORMLAB_DEVICE(long i) { out[i] = bias == nullptr ? 0.0f : bias[i % width]; });
}

void AddColumnSums(const float* a, long rows, long width, float* sums) {
  AddColumnSumsOf(
      rows, width, [=] NORMLAB_DEVICE(long r, long c) { return a[r * width + c]; }, sums);
}

void Scale(const float* x, float factor, long count, bool accumulate, float* out) {
  ForEach(count, [=] NORMLAB_DEVICE(long i) { Put(out + i, factor * x[i], accumulate); });
}

void ScaleColumns(const float* x, const float* factors, long rows, long width, bool accumulate,
                  float* out) {
  ForEach(rows * width,
          [=] NORMLAB_DEVICE(long i) { Put(out + i, factors[i % width] * x[i], accumulate); });
}

void AddColumnProducts(const float* a, const float* b, long rows, long width, float* sums) {
  AddColumnSumsOf(
      rows, width,
      [=] NORMLAB_DEVICE(long r, long c) { return a[r * width + c] * b[r * width + c]; }, sums);
}

void Spread(const float* scales, long groups, long width, float* out) {
  ForEach(width, [=] NORMLAB_DEVICE(long c) { out[c] = scales[c / (width / groups)]; });
}

void AddGroupSums(const float* columns, long groups, long width, float* sums) {
  const long group_width = width / groups;
  ForEachRow(groups, [=] NORMLAB_DEVICE(const Lanes& lanes, long g) {
    float sum = 0;
    for (long c = lanes.lane; c < group_width; c += Lanes::count) {
      sum += columns[g * group_width + c];
    }
    sum = lanes.Sum(sum);
    if (lanes.lane == 0) sums[g] += sum;
  });
}

// The 128 random bits of a counter under a key: Philox-4x32-10 (Salmon et al. 2011).
NORMLAB_DEVICE inline void Philox(unsigned state[4], unsigned key0, unsigned key1) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long first = 0xD2511F53ull * state[0];
    const unsigned long long second = 0xCD9E8D57ull * state[2];
    const unsigned next0 = static_cast<unsigned>(second >> 32) ^ state[1] ^ key0;
    const unsigned next2 = static_cast<unsigned>(first >> 32) ^ state[3] ^ key1;
    state[0] = next0;
    state[1] = static_cast<unsigned>(second);
    state[2] = next2;
    state[3] = static_cast<unsigned>(first);
    key0 += 0x9E3779B9u;  // the golden ratio
    key1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
}

void Dropout(const float* x, long rows, long width, const RandomStream& random, unsigned row,
             unsigned threshold, float scale, bool accumulate, float* y) {
  const RandomStream s = random;
  const long quads = (width + 3) / 4;  // of columns that share a counter
  ForEach(rows * quads, [=] NORMLAB_DEVICE(long i) {
    const long r = i / quads;
    const long c = i % quads * 4;
    unsigned bits[4] = {row + static_cast<unsigned>(r),
                        static_cast<unsigned>(c / 4) | s.component << 16, s.moment[0], s.moment[1]};
    Philox(bits, s.key[0], s.key[1]);
    for (int k = 0; k < 4; ++k) {
      if (c + k >= width) break;
      const long at = r * width + c + k;
      Put(y + at, x[at] * (bits[k] < threshold ? 0.0f : scale), accumulate);
    }
  });
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ELEMENTWISE_H_
