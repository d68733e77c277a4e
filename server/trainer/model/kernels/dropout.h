// Random bits from counters, and dropout with them; included only by kernels_isa.cc.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DROPOUT_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DROPOUT_H_

#include "server/trainer/model/kernels/kernels.h"

namespace normlab::trainer {
namespace {

// One of the ten rounds of Philox-4x32: two multiplications whose halves change places.
static inline void PhiloxRound(unsigned counter[4], unsigned key0, unsigned key1) {
  const unsigned long long first = 0xD2511F53ull * counter[0];
  const unsigned long long second = 0xCD9E8D57ull * counter[2];
  const unsigned next0 = static_cast<unsigned>(second >> 32) ^ counter[1] ^ key0;
  const unsigned next2 = static_cast<unsigned>(first >> 32) ^ counter[3] ^ key1;
  counter[0] = next0;
  counter[1] = static_cast<unsigned>(second);
  counter[2] = next2;
  counter[3] = static_cast<unsigned>(first);
}

void Philox(const unsigned* counter, const unsigned* key, unsigned* bits) {
  unsigned state[4] = {counter[0], counter[1], counter[2], counter[3]};
  unsigned key0 = key[0];
  unsigned key1 = key[1];
  for (int round = 0; round < 10; ++round) {
    PhiloxRound(state, key0, key1);
    key0 += 0x9E3779B9u;  // the golden ratio
    key1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
  for (int i = 0; i < 4; ++i) bits[i] = state[i];
}

void Dropout(const float* x, long rows, long width, const RandomStream& stream, unsigned row,
             unsigned threshold, float scale, bool accumulate, float* y) {
  for (long r = 0; r < rows; ++r, x += width, y += width) {
    for (long c = 0; c < width; c += 4) {
      const unsigned counter[4] = {row + static_cast<unsigned>(r),
                                   static_cast<unsigned>(c / 4) | stream.component << 16,
                                   stream.moment[0], stream.moment[1]};
      unsigned bits[4];
      Philox(counter, stream.key, bits);
      const long count = width - c < 4 ? width - c : 4;
      for (long i = 0; i < count; ++i) {
        const float kept = x[c + i] * (bits[i] < threshold ? 0.0f : scale);
        y[c + i] = accumulate ? y[c + i] + kept : kept;
      }
    }
  }
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DROPOUT_H_
