// NumPy's default generator, bit for bit: `numpy.random.default_rng(seed).integers(0, n,
// dtype=int32)` as the article's script draws it. Sources: O'Neill 2014 (PCG XSL RR 128/64),
// NumPy's SeedSequence, Lemire 2019 (bounded integers).
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_NUMPY_RANDOM_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_NUMPY_RANDOM_H_

#include <array>
#include <cstdint>
#include <optional>

namespace normlab::trainer {

// Not thread-safe. Copying copies the whole state, so a copy continues the same sequence.
class NumpyRandom {
 public:
  // Seeds below 2^64 suffice for normlab; NumPy takes any size.
  explicit NumpyRandom(uint64_t seed);

  uint64_t Next64();

  // The low half of a fresh 64-bit draw, then its high half. The pending half is part of the state:
  // a checkpoint that forgets it changes the data.
  uint32_t Next32();

  // Uniform in [0, n), 1 <= n < 2^31. n = 1 consumes nothing.
  uint32_t Below(uint32_t n);

  // Uniform in [0, 1): NumPy's random(), a multiple of 2^-53.
  double Uniform();

  // Everything that decides the next draw, for a checkpoint: the 128-bit state and increment, high
  // half first, then whether there is a pending half-word, and that.
  using State = std::array<uint64_t, 6>;
  State Save() const;
  void Restore(const State& state);

 private:
  __extension__ using Uint128 = unsigned __int128;

  void Step();

  Uint128 state_ = 0;
  Uint128 increment_ = 0;
  std::optional<uint32_t> pending_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_NUMPY_RANDOM_H_
