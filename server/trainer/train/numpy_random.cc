#include "server/trainer/train/numpy_random.h"

#include <array>
#include <bit>
#include <cstddef>

namespace normlab::trainer {
namespace {

using Pool = std::array<uint32_t, 4>;

// SeedSequence's multiply-and-fold hash; its multiplier changes with every use.
class SeedHash {
 public:
  SeedHash(uint32_t start, uint32_t factor) : multiplier_(start), factor_(factor) {}

  uint32_t operator()(uint32_t value) {
    value ^= multiplier_;
    multiplier_ *= factor_;
    value *= multiplier_;
    return value ^ value >> 16;
  }

 private:
  uint32_t multiplier_;
  uint32_t factor_;
};

uint32_t Mix(uint32_t x, uint32_t y) {
  const uint32_t mixed = x * 0xCA01F9DDu - y * 0x4973F715u;
  return mixed ^ mixed >> 16;
}

Pool MixEntropy(uint64_t seed) {
  const Pool words = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0};
  SeedHash hash(0x43B0D7E5u, 0x931E8875u);
  Pool pool{};
  for (size_t i = 0; i < pool.size(); ++i) pool[i] = hash(words[i]);
  for (size_t source = 0; source < pool.size(); ++source) {
    for (size_t target = 0; target < pool.size(); ++target) {
      if (target != source) pool[target] = Mix(pool[target], hash(pool[source]));
    }
  }
  return pool;
}

// The generator's seed material: four 64-bit words.
std::array<uint64_t, 4> GenerateState(const Pool& pool) {
  SeedHash hash(0x8B51F9DDu, 0x58F38DEDu);
  std::array<uint64_t, 4> words{};
  for (size_t i = 0; i < 8; ++i) {
    words[i / 2] |= uint64_t{hash(pool[i % 4])} << (i % 2 * 32);
  }
  return words;
}

}  // namespace

NumpyRandom::NumpyRandom(uint64_t seed) {
  const std::array<uint64_t, 4> words = GenerateState(MixEntropy(seed));
  increment_ = (Uint128{words[2]} << 64 | words[3]) << 1 | 1;
  Step();
  state_ += Uint128{words[0]} << 64 | words[1];
  Step();
}

void NumpyRandom::Step() {
  constexpr Uint128 kMultiplier = Uint128{0x2360ED051FC65DA4u} << 64 | 0x4385DF649FCCF645u;
  state_ = state_ * kMultiplier + increment_;
}

uint64_t NumpyRandom::Next64() {
  Step();
  const auto high = static_cast<uint64_t>(state_ >> 64);
  const auto low = static_cast<uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(high >> 58));
}

uint32_t NumpyRandom::Next32() {
  if (pending_) {
    const uint32_t half = *pending_;
    pending_.reset();
    return half;
  }
  const uint64_t fresh = Next64();
  pending_ = static_cast<uint32_t>(fresh >> 32);
  return static_cast<uint32_t>(fresh);
}

uint32_t NumpyRandom::Below(uint32_t n) {
  if (n == 1) return 0;
  uint64_t product = uint64_t{Next32()} * n;
  if (static_cast<uint32_t>(product) < n) {
    // Rejecting the lowest 2^32 mod n products makes every result equally likely.
    const uint32_t threshold = -n % n;
    while (static_cast<uint32_t>(product) < threshold) product = uint64_t{Next32()} * n;
  }
  return static_cast<uint32_t>(product >> 32);
}

double NumpyRandom::Uniform() { return static_cast<double>(Next64() >> 11) * 0x1p-53; }

NumpyRandom::State NumpyRandom::Save() const {
  const auto high = [](Uint128 x) { return static_cast<uint64_t>(x >> 64); };
  const auto low = [](Uint128 x) { return static_cast<uint64_t>(x); };
  return {high(state_),    low(state_),        high(increment_),
          low(increment_), pending_ ? 1u : 0u, pending_.value_or(0)};
}

void NumpyRandom::Restore(const State& state) {
  state_ = Uint128{state[0]} << 64 | state[1];
  increment_ = Uint128{state[2]} << 64 | state[3];
  pending_.reset();
  if (state[4] != 0) pending_ = static_cast<uint32_t>(state[5]);
}

}  // namespace normlab::trainer
