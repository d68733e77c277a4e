// The weight matrices of a dense decoder, in the order of the model.
#ifndef NORMLAB_TESTS_BENCH_WEIGHT_SHAPES_H_
#define NORMLAB_TESTS_BENCH_WEIGHT_SHAPES_H_

#include <cstdint>
#include <vector>

#include "server/trainer/trainer.h"

namespace normlab::trainer {

struct WeightShape {
  int64_t in;
  int64_t out;
};

inline std::vector<WeightShape> WeightShapes(const TrainingSettings& s) {
  std::vector<WeightShape> shapes;
  for (int64_t i = 0; i < s.layers; ++i) {
    shapes.push_back({s.d_model, 3 * s.d_model});
    shapes.push_back({s.d_model, s.d_model});
    shapes.push_back({s.d_model, s.ffn_width});
    shapes.push_back({s.ffn_width, s.d_model});
  }
  shapes.push_back({s.d_model, s.vocab_size});
  return shapes;
}

// Of the forward product and the two on the way back.
inline double WeightFlops(const TrainingSettings& s) {
  double total = 0;
  for (const WeightShape& shape : WeightShapes(s)) {
    total += 6.0 * static_cast<double>(s.batch_size * s.sequence_length * shape.in * shape.out);
  }
  return total;
}

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_BENCH_WEIGHT_SHAPES_H_
