#include "server/trainer/model/components/attend.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/components/relative_scores.h"

namespace normlab::trainer {
namespace {

// The part of a value that belongs to one head of one sequence, and of its gradient.
struct HeadPart {
  const float* data = nullptr;
  float* gradient = nullptr;
  int64_t stride = 0;  // between rows
  int64_t rows = 0;
};

// With r() rounding in a bf16 run and nothing in fp32: scores = r(r(q) r(k)^T), P = softmax(scale *
// scores), y = r(r(P) r(v)); back, dP = r(r(dy) r(v)^T), dscores = scale * P * (dP - sum(P dP)),
// and products of r(dscores) and r(P) for dq, dk and dv.
class AttendComponent final : public Component {
 public:
  AttendComponent(const Attention& attention, std::optional<RelativeTables> tables, Value y)
      : attention_(attention), y_value_(y) {
    if (tables) relative_.emplace(*tables, attention.heads);
  }

  void Bind(Program& program) override {
    program_ = &program;
    query_time_ = y_value_.rows() / program.batch();
    key_time_ = attention_.keys.value.rows() / program.batch();
    head_width_ = attention_.width / attention_.heads;
    scale_ = 1.0f / std::sqrt(static_cast<float>(head_width_));
    for (Buffer* buffer : {&q_, &out_}) *buffer = Buffer(query_time_ * head_width_);
    for (Buffer* buffer : {&k_, &v_}) *buffer = Buffer(key_time_ * head_width_);
    product_ = Buffer(std::max(query_time_, key_time_) * head_width_);
    scores_ = Buffer(query_time_ * key_time_);
    rounded_ = Buffer(query_time_ * key_time_);
    probabilities_ = Buffer(program.batch() * attention_.heads * query_time_ * key_time_);
    if (relative_) relative_->Bind(program, query_time_, key_time_, head_width_);
    y_ = program.Data(y_value_);
    y_gradient_ = program.GradientOf(y_value_);
    BindInputs();
  }

  void Forward() override {
    for (int64_t b = 0; b < program_->batch(); ++b) {
      for (int64_t h = 0; h < attention_.heads; ++h) HeadForward(b, h);
    }
  }

  void Backward() override {
    // Several inputs may be columns of one value, so everything is added.
    for (const Input& input : inputs_) {
      const int64_t count = input.value.rows() * input.value.width();
      if (!input.slot.accumulate) std::fill_n(input.slot.data, count, 0.0f);
    }
    for (int64_t b = 0; b < program_->batch(); ++b) {
      for (int64_t h = 0; h < attention_.heads; ++h) HeadBackward(b, h);
    }
  }

 private:
  // A value that is read, once even if it holds queries, keys and values.
  struct Input {
    Value value;
    const float* data;
    GradientSlot slot;
  };

  void BindInputs() {
    for (const Columns& columns : {attention_.queries, attention_.keys, attention_.values}) {
      const auto same = [&](const Input& input) {
        return input.value.index == columns.value.index;
      };
      if (std::ranges::any_of(inputs_, same)) continue;
      inputs_.push_back(
          {columns.value, program_->Data(columns.value), program_->AddGradient(columns.value)});
    }
  }

  HeadPart PartOf(const Columns& columns, int64_t b, int64_t h) const {
    const auto input = std::ranges::find_if(
        inputs_, [&](const Input& i) { return i.value.index == columns.value.index; });
    const int64_t stride = columns.value.width();
    const int64_t rows = columns.value.rows() / program_->batch();
    const int64_t offset = b * rows * stride + columns.first + h * head_width_;
    return {input->data + offset, input->slot.data + offset, stride, rows};
  }

  // A head's rows one after the other, rounded.
  void Gather(const float* from, int64_t stride, int64_t rows, Buffer& to) const {
    for (int64_t t = 0; t < rows; ++t) {
      program_->kernels().copy(from + t * stride, head_width_, false, to.data() + t * head_width_);
    }
    program_->RoundProduct(to.data(), rows * head_width_);
  }

  // Adds product_ (rounded) to a head's gradient.
  void Scatter(const HeadPart& part) {
    program_->RoundProduct(product_.data(), part.rows * head_width_);
    for (int64_t t = 0; t < part.rows; ++t) {
      program_->kernels().copy(product_.data() + t * head_width_, head_width_, true,
                               part.gradient + t * part.stride);
    }
  }

  float* Probabilities(int64_t b, int64_t h) {
    return probabilities_.data() + (b * attention_.heads + h) * query_time_ * key_time_;
  }

  // The keys [first, last) that query t of sequence b sees.
  struct Range {
    int64_t first;
    int64_t last;
  };
  Range Visible(int64_t b, int64_t t) const {
    const std::vector<int32_t>& lengths = program_->inputs().source_lengths;
    switch (attention_.sight) {
      case Sight::kAll:
        break;
      case Sight::kPast:
        return {FirstVisible(), key_time_ - query_time_ + t + 1};
      case Sight::kSource:
        if (lengths.empty()) break;
        return {0, std::clamp<int64_t>(lengths[static_cast<size_t>(b)], 0, key_time_)};
    }
    return {0, key_time_};
  }

  int64_t FirstVisible() const {
    if (!attention_.memory_filled) return 0;
    const float filled = *program_->Data(*attention_.memory_filled);
    return key_time_ - query_time_ - static_cast<int64_t>(filled);
  }

  // c [rows, columns] = a b, with the operands' strides.
  void Multiply(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row,
                int64_t b_column, int64_t rows, int64_t columns, int64_t depth, float* c) const {
    program_->kernels().matrix_multiply(a, a_row, a_column, b, b_row, b_column, rows, columns,
                                        depth, nullptr, false, c);
  }

  void GatherHead(int64_t b, int64_t h) {
    const HeadPart q = PartOf(attention_.queries, b, h);
    const HeadPart k = PartOf(attention_.keys, b, h);
    const HeadPart v = PartOf(attention_.values, b, h);
    Gather(q.data, q.stride, q.rows, q_);
    Gather(k.data, k.stride, k.rows, k_);
    Gather(v.data, v.stride, v.rows, v_);
  }

  void HeadForward(int64_t b, int64_t h) {
    GatherHead(b, h);
    float* p = Probabilities(b, h);
    const int64_t d = head_width_;
    Multiply(q_.data(), d, 1, k_.data(), 1, d, query_time_, key_time_, d, p);
    program_->RoundProduct(p, query_time_ * key_time_);
    if (relative_) relative_->AddScores(h, q_.data(), k_.data(), p);
    for (int64_t t = 0; t < query_time_; ++t) Softmax(Visible(b, t), p + t * key_time_);
    std::copy_n(p, query_time_ * key_time_, rounded_.data());
    program_->RoundProduct(rounded_.data(), query_time_ * key_time_);
    Multiply(rounded_.data(), key_time_, 1, v_.data(), d, 1, query_time_, d, key_time_,
             out_.data());
    program_->RoundProduct(out_.data(), query_time_ * d);
    for (int64_t t = 0; t < query_time_; ++t) {
      float* y = y_ + (b * query_time_ + t) * attention_.width + h * d;
      program_->kernels().copy(out_.data() + t * d, d, false, y);
    }
  }

  // Zeros outside the range.
  void Softmax(const Range& range, float* row) const {
    std::fill(row, row + range.first, 0.0f);
    std::fill(row + range.last, row + key_time_, 0.0f);
    if (range.first == range.last) return;
    program_->kernels().softmax_of_row(scale_, range.last - range.first, row + range.first);
  }

  void HeadBackward(int64_t b, int64_t h) {
    GatherHead(b, h);
    const int64_t d = head_width_;
    const float* p = Probabilities(b, h);
    const int64_t count = query_time_ * key_time_;
    Gather(y_gradient_ + b * query_time_ * attention_.width + h * d, attention_.width, query_time_,
           out_);
    std::copy_n(p, count, rounded_.data());
    program_->RoundProduct(rounded_.data(), count);
    Multiply(rounded_.data(), 1, key_time_, out_.data(), d, 1, key_time_, d, query_time_,
             product_.data());  // dv = P^T dy
    Scatter(PartOf(attention_.values, b, h));

    Multiply(out_.data(), d, 1, v_.data(), 1, d, query_time_, key_time_, d, scores_.data());
    program_->RoundProduct(scores_.data(), count);
    for (int64_t t = 0; t < query_time_; ++t) {
      program_->kernels().softmax_gradient_of_row(p + t * key_time_, scale_, key_time_,
                                                  scores_.data() + t * key_time_);
    }
    const HeadPart q = PartOf(attention_.queries, b, h);
    const HeadPart k = PartOf(attention_.keys, b, h);
    if (relative_)
      relative_->Backward(h, q_.data(), k_.data(), scores_.data(), q.gradient, q.stride, k.gradient,
                          k.stride);
    program_->RoundProduct(scores_.data(), count);
    Multiply(scores_.data(), key_time_, 1, k_.data(), d, 1, query_time_, d, key_time_,
             product_.data());  // dq = dscores k
    Scatter(q);
    Multiply(scores_.data(), 1, key_time_, q_.data(), d, 1, key_time_, d, query_time_,
             product_.data());  // dk = dscores^T q
    Scatter(k);
  }

  const Attention attention_;
  const Value y_value_;
  std::optional<RelativeScores> relative_;
  Program* program_ = nullptr;
  int64_t query_time_ = 0;
  int64_t key_time_ = 0;
  int64_t head_width_ = 0;
  float scale_ = 1;
  std::vector<Input> inputs_;
  Buffer probabilities_;  // [batch, heads, query time, key time]
  // Of one head.
  Buffer q_;
  Buffer k_;
  Buffer v_;
  Buffer out_;  // or its gradient
  Buffer product_;
  Buffer scores_;
  Buffer rounded_;
  float* y_ = nullptr;
  const float* y_gradient_ = nullptr;
};

}  // namespace

Value Attend(const Attention& attention) {
  Program& program = *attention.queries.value.program;
  std::optional<RelativeTables> tables;
  if (attention.table_length > 0) {
    tables = DeclareRelativeTables(program.parameters(), attention.relative_path,
                                   attention.table_length, attention.width, attention.heads);
  }
  const Value y = program.NewValue(attention.queries.value.rows(), attention.width);
  Record<AttendComponent>(program, attention, tables, y);
  return y;
}

}  // namespace normlab::trainer
