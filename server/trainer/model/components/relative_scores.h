// Transformer-XL's relative positions: what they add to the scores of an attention (Dai et al. 2019
// with learned tables in place of sinusoids).
#ifndef NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_RELATIVE_SCORES_H_
#define NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_RELATIVE_SCORES_H_

#include <cstdint>
#include <string_view>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/program.h"

namespace normlab::trainer {

struct RelativeTables {
  ParameterTable::Id keys;      // R [length, d]
  ParameterTable::Id bias;      // S [length, heads]
  ParameterTable::Id key_bias;  // v [d]
  int64_t length = 0;
};

// All from 0, under PATH/.
RelativeTables DeclareRelativeTables(ParameterTable& parameters, std::string_view path,
                                     int64_t length, int64_t width, int64_t heads);

// For one attention whose last query and last key are at the same position: query i and key j are i
// + (key time - query time) - j apart. Keys after the query get some score, which a mask hides.
class RelativeScores {
 public:
  RelativeScores(const RelativeTables& tables, int64_t heads) : tables_(tables), heads_(heads) {}

  void Bind(Program& program, int64_t query_time, int64_t key_time, int64_t head_width);

  // Adds q.R + v.k + S to one head's scores [query time, key time]. q [query time, head width] and
  // k [key time, head width] are rounded already.
  void AddScores(int64_t head, const float* q, const float* k, float* scores);

  // From the gradient of the scores, 0 where masked: adds to those of the tables and to the rows of
  // q and k.
  void Backward(int64_t head, const float* q, const float* k, const float* scores_gradient,
                float* q_gradient, int64_t q_stride, float* k_gradient, int64_t k_stride);

 private:
  // Row of the tables for query i and key j.
  int64_t Row(int64_t i, int64_t j) const;
  // The head's columns of R and v, rounded, into table_ and vector_.
  void GatherHead(int64_t head);

  const RelativeTables tables_;
  const int64_t heads_;
  Program* program_ = nullptr;
  int64_t query_time_ = 0;
  int64_t key_time_ = 0;
  int64_t head_width_ = 0;
  int64_t rows_ = 0;  // of the tables that occur
  Buffer table_;      // [rows, head width]
  Buffer vector_;     // [head width]
  Buffer by_row_;     // [query time, rows]: q.R, or the gradient of it
  Buffer by_key_;     // [key time]: v.k, or the gradient of it
  Buffer product_;    // [larger of query time and rows, head width]
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_RELATIVE_SCORES_H_
