#include "server/trainer/train/learner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>

#include "server/trainer/model/decoder.h"
#include "server/trainer/train/threads.h"

namespace normlab::trainer {
namespace {

void CheckTrainingSettings(const TrainingSettings& settings) {
  if (settings.optimizer != "adamw") {
    throw std::runtime_error("optimizer \"" + settings.optimizer +
                             "\" is not known; known are adamw");
  }
  if (settings.schedule != "constant") {
    throw std::runtime_error("schedule \"" + settings.schedule +
                             "\" is not known; known are constant");
  }
  if (settings.decay_parameters != "all" && settings.decay_parameters != "matrices") {
    throw std::runtime_error("decay_parameters \"" + settings.decay_parameters +
                             "\" is not known; known are all, matrices");
  }
  if (settings.threads < 1) {
    throw std::runtime_error("threads must be at least 1, not " + std::to_string(settings.threads));
  }
}

}  // namespace

Learner::Learner(const TrainingSettings& settings) : settings_(settings) {
  CheckTrainingSettings(settings);
  CheckModelSettings(settings);
  RecordShares();
  weights_ = Buffer(parameters_.buffer_size());
  parameters_.Initialize(settings.seed, weights_.span());
  for (Share& share : shares_) {
    share.gradients = Buffer(parameters_.buffer_size());
    share.program->Finish(weights_.data(), share.gradients.data());
  }
  optimizer_ = std::make_unique<AdamW>(settings, parameters_);
}

void Learner::RecordShares() {
  const int64_t count = std::min(settings_.threads, settings_.batch_size);
  const int64_t total_rows = settings_.batch_size * settings_.sequence_length;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = settings_.batch_size * i / count;
    const int64_t end = settings_.batch_size * (i + 1) / count;
    Share share;
    share.first_row = begin * settings_.sequence_length;
    share.program = std::make_unique<Program>(parameters_, end - begin, settings_.sequence_length);
    RecordDecoder(settings_, total_rows, *share.program);
    shares_.push_back(std::move(share));
  }
}

template <typename Work>
void Learner::ForEachPart(const Work& work) {
  const auto count = static_cast<int64_t>(shares_.size());
  const int64_t lines = parameters_.buffer_size() / 16;  // whole cache lines
  RunOnThreads(count, [&](int64_t i) {
    work(static_cast<size_t>(i), lines * i / count * 16, lines * (i + 1) / count * 16);
  });
}

double Learner::ComputeGradients(std::span<const int32_t> tokens,
                                 std::span<const int32_t> targets) {
  RunOnThreads(static_cast<int64_t>(shares_.size()), [&](int64_t i) {
    Share& share = shares_[static_cast<size_t>(i)];
    Program& program = *share.program;
    const auto first = static_cast<size_t>(share.first_row);
    const auto rows = static_cast<size_t>(program.rows());
    std::ranges::copy(tokens.subspan(first, rows), program.tokens().begin());
    std::ranges::copy(targets.subspan(first, rows), program.targets().begin());
    std::ranges::fill(share.gradients.span(), 0.0f);
    program.Forward();
    program.Backward();
  });
  if (shares_.size() > 1) {
    ForEachPart([&](size_t, int64_t begin, int64_t end) {
      for (size_t i = 1; i < shares_.size(); ++i) {
        BestKernels().copy(shares_[i].gradients.data() + begin, end - begin, true,
                           shares_[0].gradients.data() + begin);
      }
    });
  }
  return std::accumulate(shares_.begin(), shares_.end(), 0.0, [](double sum, const Share& share) {
    return sum + share.program->loss();
  });
}

double Learner::GradientNorm() {
  std::vector<double> squares(shares_.size());
  ForEachPart([&](size_t i, int64_t begin, int64_t end) {
    squares[i] = BestKernels().sum_of_squares(shares_[0].gradients.data() + begin, end - begin);
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

int64_t Learner::NonFiniteCount() const {
  return std::ranges::count_if(gradients(), [](float x) { return !std::isfinite(x); });
}

void Learner::Update(int64_t step, double learning_rate) {
  ForEachPart([&](size_t, int64_t begin, int64_t end) {
    optimizer_->Update(step, learning_rate, begin, end, shares_[0].gradients.data(),
                       weights_.data());
  });
}

}  // namespace normlab::trainer
