#include "server/trainer/model/components/relative_scores.h"

#include <algorithm>
#include <string>

namespace normlab::trainer {

RelativeTables DeclareRelativeTables(ParameterTable& parameters, std::string_view path,
                                     int64_t length, int64_t width, int64_t heads) {
  const std::string prefix(path);
  const Initializer zero = Initializer::Constant(0.0f);
  RelativeTables tables;
  tables.keys = parameters.Declare(prefix + "/relative_keys", {length, width}, zero);
  tables.bias = parameters.Declare(prefix + "/relative_bias", {length, heads}, zero);
  tables.key_bias = parameters.Declare(prefix + "/key_bias", {width}, zero);
  tables.length = length;
  return tables;
}

void RelativeScores::Bind(Program& program, int64_t query_time, int64_t key_time,
                          int64_t head_width) {
  program_ = &program;
  query_time_ = query_time;
  key_time_ = key_time;
  head_width_ = head_width;
  rows_ = std::min(key_time, tables_.length);
  table_ = Buffer(rows_ * head_width);
  vector_ = Buffer(head_width);
  by_row_ = Buffer(query_time * rows_);
  by_key_ = Buffer(key_time);
  product_ = Buffer(std::max(query_time, rows_) * head_width);
}

int64_t RelativeScores::Row(int64_t i, int64_t j) const {
  return std::clamp<int64_t>(i + key_time_ - query_time_ - j, 0, rows_ - 1);
}

void RelativeScores::GatherHead(int64_t head) {
  const int64_t width = heads_ * head_width_;
  const float* keys = program_->Weights(tables_.keys) + head * head_width_;
  for (int64_t row = 0; row < rows_; ++row) {
    std::copy_n(keys + row * width, head_width_, table_.data() + row * head_width_);
  }
  std::copy_n(program_->Weights(tables_.key_bias) + head * head_width_, head_width_,
              vector_.data());
  program_->RoundProduct(table_.data(), rows_ * head_width_);
  program_->RoundProduct(vector_.data(), head_width_);
}

void RelativeScores::AddScores(int64_t head, const float* q, const float* k, float* scores) {
  GatherHead(head);
  const Kernels& kernels = program_->kernels();
  kernels.matrix_multiply(q, head_width_, 1, table_.data(), 1, head_width_, query_time_, rows_,
                          head_width_, nullptr, false, by_row_.data());
  program_->RoundProduct(by_row_.data(), query_time_ * rows_);
  kernels.matrix_multiply(k, head_width_, 1, vector_.data(), 1, 1, key_time_, 1, head_width_,
                          nullptr, false, by_key_.data());
  program_->RoundProduct(by_key_.data(), key_time_);
  const float* bias = program_->Weights(tables_.bias) + head;
  for (int64_t i = 0; i < query_time_; ++i) {
    for (int64_t j = 0; j < key_time_; ++j) {
      const int64_t row = Row(i, j);
      scores[i * key_time_ + j] +=
          by_row_.data()[i * rows_ + row] + by_key_.data()[j] + bias[row * heads_];
    }
  }
}

void RelativeScores::Backward(int64_t head, const float* q, const float* k,
                              const float* scores_gradient, float* q_gradient, int64_t q_stride,
                              float* k_gradient, int64_t k_stride) {
  GatherHead(head);
  const Kernels& kernels = program_->kernels();
  const int64_t width = heads_ * head_width_;
  std::ranges::fill(by_row_.span(), 0.0f);
  std::ranges::fill(by_key_.span(), 0.0f);
  float* bias_gradient = program_->WeightGradient(tables_.bias) + head;
  for (int64_t i = 0; i < query_time_; ++i) {
    for (int64_t j = 0; j < key_time_; ++j) {
      const float gradient = scores_gradient[i * key_time_ + j];
      const int64_t row = Row(i, j);
      by_row_.data()[i * rows_ + row] += gradient;
      by_key_.data()[j] += gradient;
      bias_gradient[row * heads_] += gradient;
    }
  }
  program_->RoundProduct(by_row_.data(), query_time_ * rows_);
  program_->RoundProduct(by_key_.data(), key_time_);

  kernels.matrix_multiply(by_row_.data(), rows_, 1, table_.data(), head_width_, 1, query_time_,
                          head_width_, rows_, nullptr, false, product_.data());
  program_->RoundProduct(product_.data(), query_time_ * head_width_);
  for (int64_t i = 0; i < query_time_; ++i) {
    kernels.copy(product_.data() + i * head_width_, head_width_, true, q_gradient + i * q_stride);
  }

  kernels.matrix_multiply(by_row_.data(), 1, rows_, q, head_width_, 1, rows_, head_width_,
                          query_time_, nullptr, false, product_.data());
  float* keys_gradient = program_->WeightGradient(tables_.keys) + head * head_width_;
  for (int64_t row = 0; row < rows_; ++row) {
    kernels.copy(product_.data() + row * head_width_, head_width_, true,
                 keys_gradient + row * width);
  }

  float* vector_gradient = program_->WeightGradient(tables_.key_bias) + head * head_width_;
  for (int64_t j = 0; j < key_time_; ++j) {
    const float gradient = by_key_.data()[j];
    for (int64_t c = 0; c < head_width_; ++c) {
      vector_gradient[c] += gradient * k[j * head_width_ + c];
      product_.data()[c] = gradient * vector_.data()[c];
    }
    program_->RoundProduct(product_.data(), head_width_);
    kernels.copy(product_.data(), head_width_, true, k_gradient + j * k_stride);
  }
}

}  // namespace normlab::trainer
