#include "server/trainer/train/diagnostics.h"

#include <algorithm>
#include <cmath>

namespace normlab::trainer {
namespace {

// How large a value is, gathered over the shares of a batch.
struct Size {
  double squares = 0;
  double largest = 0;
  int64_t count = 0;

  void Add(Program& program, Value value) {
    const float* data = program.Data(value);
    const int64_t n = value.rows() * value.width();
    squares += program.kernels().sum_of_squares(data, n);
    const double here = program.kernels().largest(data, n);
    if (!(here <= largest)) largest = here;  // also when it is NaN
    count += n;
  }

  double Rms() const { return std::sqrt(squares / static_cast<double>(count)); }
};

template <typename Pick>
Size SizeOf(Learner& learner, const Pick& pick) {
  Size size;
  for (size_t i = 0; i < learner.share_count(); ++i) {
    size.Add(learner.program(i), pick(learner.model(i)));
  }
  return size;
}

const char* BranchName(size_t branch, size_t branches) {
  if (branch == 0) return "attention";
  return branch + 1 == branches ? "mlp" : "cross";
}

}  // namespace

std::string BlockSeriesName(const std::string& path) {
  const size_t underscore = path.rfind('_');
  const int64_t index = std::stoll(path.substr(underscore + 1));
  return path.substr(0, underscore) + "/" + std::to_string(index + 1);
}

Diagnostics::Diagnostics(const TrainingSettings& settings, Learner& learner)
    : settings_(settings), learner_(learner) {
  if (settings_.diagnose_every == 0) return;
  NameBlocks();
  if (settings_.diagnose_tensors) NameTensors();
  values_.reserve(names_.size());
  weights_before_ = Buffer(learner.parameters().buffer_size());
}

void Diagnostics::NameBlocks() {
  for (const BlockTaps& taps : learner_.model(0).blocks) {
    BlockPart part{.name = BlockSeriesName(taps.path), .ranges = {}};
    for (const Parameter& parameter : learner_.parameters().all()) {
      if (!parameter.path.starts_with(taps.path + "/")) continue;
      part.ranges.push_back({parameter.offset, parameter.count});
    }
    for (const char* name :
         {"gradient_norm", "weight_norm", "update_ratio", "stream_rms", "stream_max"}) {
      names_.push_back(part.name + "/" + name);
    }
    for (size_t i = 0; i < taps.branches.size(); ++i) {
      names_.push_back(part.name + "/" + BranchName(i, taps.branches.size()) + "_ratio");
    }
    blocks_.push_back(std::move(part));
  }
}

void Diagnostics::NameTensors() {
  for (const Parameter& parameter : learner_.parameters().all()) {
    names_.push_back("tensor/" + parameter.path + "/gradient_norm");
    tensors_.push_back({parameter.offset, parameter.count});
  }
}

bool Diagnostics::Due(int64_t step) const {
  if (settings_.diagnose_every == 0) return false;
  return step == 1 || step % settings_.diagnose_every == 0;
}

void Diagnostics::BeforeUpdate() {
  learner_.DownloadForDiagnostics();
  std::ranges::copy(learner_.weights(), weights_before_.data());
  const float* gradients = learner_.gradients().data();
  const auto norm = [](const float* data, const std::vector<Range>& ranges) {
    double squares = 0;
    for (const Range& range : ranges) {
      squares += BestKernels().sum_of_squares(data + range.begin, range.count);
    }
    return std::sqrt(squares);
  };
  values_.clear();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    values_.push_back(norm(gradients, blocks_[i].ranges));
    values_.push_back(norm(weights_before_.data(), blocks_[i].ranges));
    values_.push_back(0);  // the update ratio, known later
    AddStream(i);
  }
  for (const Range& tensor : tensors_) values_.push_back(norm(gradients, {tensor}));
}

void Diagnostics::AddStream(size_t block) {
  const auto taps = [block](const Model& model) -> const BlockTaps& { return model.blocks[block]; };
  const double input = SizeOf(learner_, [&](const Model& m) { return taps(m).input; }).Rms();
  const Size output = SizeOf(learner_, [&](const Model& m) { return taps(m).output; });
  values_.push_back(output.Rms());
  values_.push_back(output.largest);
  for (size_t i = 0; i < taps(learner_.model(0)).branches.size(); ++i) {
    const Size branch = SizeOf(learner_, [&](const Model& m) { return taps(m).branches[i]; });
    values_.push_back(branch.Rms() / input);
  }
}

const std::vector<double>& Diagnostics::AfterUpdate() {
  learner_.DownloadWeights();
  size_t at = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    double squares = 0;
    for (const Range& range : blocks_[i].ranges) squares += WeightChange(range);
    values_[at + 2] = std::sqrt(squares) / values_[at + 1];
    at += 5 + learner_.model(0).blocks[i].branches.size();
  }
  return values_;
}

// Sum of the squared changes of the weights in a range.
double Diagnostics::WeightChange(const Range& range) const {
  return BestKernels().sum_of_squared_differences(
      learner_.weights().data() + range.begin, weights_before_.data() + range.begin, range.count);
}

}  // namespace normlab::trainer
