// The constants of DeepNorm (Wang et al. 2022, arXiv 2203.00555, table 1): x' = N(alpha * x +
// F(x)), with initial weights of F scaled by beta.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_DEEPNORM_CONSTANTS_H_
#define NORMLAB_SERVER_TRAINER_MODEL_DEEPNORM_CONSTANTS_H_

#include <cmath>
#include <cstdint>

namespace normlab::trainer {

struct DeepNormConstants {
  double alpha = 1;
  double beta = 1;
};

// A single stack of `layers` blocks, encoder or decoder.
inline DeepNormConstants DeepNormOfStack(int64_t layers) {
  const auto n = static_cast<double>(layers);
  return {std::pow(2 * n, 0.25), std::pow(8 * n, -0.25)};
}

// The encoder beside a decoder.
inline DeepNormConstants DeepNormOfEncoder(int64_t encoder_layers, int64_t decoder_layers) {
  const double product =
      std::pow(static_cast<double>(encoder_layers), 4) * static_cast<double>(decoder_layers);
  return {0.81 * std::pow(product, 1.0 / 16), 0.87 * std::pow(product, -1.0 / 16)};
}

// The decoder behind an encoder.
inline DeepNormConstants DeepNormOfDecoder(int64_t decoder_layers) {
  const auto m = static_cast<double>(decoder_layers);
  return {std::pow(3 * m, 0.25), std::pow(12 * m, -0.25)};
}

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_DEEPNORM_CONSTANTS_H_
