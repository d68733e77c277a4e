#include "server/trainer/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/train/fingerprint.h"
#include "server/trainer/train/safetensors.h"
#include "server/trainer/train/weights.h"

namespace normlab::trainer {
namespace {

constexpr std::string_view kFormat = "normlab-checkpoint-1";
constexpr std::string_view kSetting = "setting.";
constexpr std::string_view kFilePrefix = "step-";
constexpr std::string_view kFileSuffix = ".safetensors";
constexpr size_t kStepDigits = 12;
constexpr size_t kMostLosses = 1000;  // a bound for reading, beyond what the detector keeps

using Metadata = SafetensorsFile::Metadata;

std::string OptimizerName(std::string_view state, const std::string& parameter) {
  return std::string(kStatePrefix) + "optimizer/" + std::string(state) + "/" + parameter;
}

std::string ProgramStateName(size_t share, int index) {
  return std::string(kStatePrefix) + "state/" + std::to_string(share) + "/" + std::to_string(index);
}

const std::string kDataName = std::string(kStatePrefix) + "data";
const std::string kLossesName = std::string(kStatePrefix) + "losses";

std::span<float> PartOf(std::span<float> buffer, const Parameter& parameter) {
  return buffer.subspan(static_cast<size_t>(parameter.offset),
                        static_cast<size_t>(parameter.count));
}

// Calls visit(name, shape, floats) for every array of floats in a checkpoint.
template <typename Visit>
void ForEachTensor(Learner& learner, const Visit& visit) {
  const std::vector<Optimizer::State> states = learner.optimizer().States();
  for (const Parameter& parameter : learner.parameters().all()) {
    visit(parameter.path, parameter.shape, PartOf(learner.weights(), parameter));
    for (const Optimizer::State& state : states) {
      visit(OptimizerName(state.name, parameter.path), parameter.shape,
            PartOf(state.values, parameter));
    }
  }
  for (size_t share = 0; share < learner.share_count(); ++share) {
    Program& program = learner.program(share);
    for (int i = 0; i < program.state_count(); ++i) {
      const std::span<float> values = program.State(i);
      visit(ProgramStateName(share, i), {static_cast<int64_t>(values.size())}, values);
    }
  }
}

Metadata MakeMetadata(int64_t step, const TrainingState& state) {
  Metadata metadata = {{"format", std::string(kFormat)},
                       {"step", std::to_string(step)},
                       {"content_hash", std::to_string(state.data.ContentHash())},
                       {"instruction_set", BestKernels().instruction_set}};
  for (const auto& [name, value] : Fingerprint(state.settings)) {
    metadata.emplace(std::string(kSetting) + name, value);
  }
  return metadata;
}

std::string Get(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "unknown" : found->second;
}

// Throws for the first setting that differs.
void CheckFingerprint(const SafetensorsFile& file, const TrainingState& state) {
  for (const auto& [name, value] : Fingerprint(state.settings)) {
    const std::string theirs = Get(file.metadata(), std::string(kSetting) + name);
    if (theirs == value) continue;
    std::string message = file.path() + " was written by a run with " + name + " " + theirs +
                          "; this run has " + value + " and cannot go on from it";
    if (name == "steps") message += ", because its learning rates depend on steps";
    throw std::runtime_error(message);
  }
  if (Get(file.metadata(), "content_hash") != std::to_string(state.data.ContentHash())) {
    throw std::runtime_error(file.path() + " was written by a run on another text than " +
                             state.settings.text_file);
  }
}

// The digits as a number, or -1.
int64_t ParseStep(std::string_view digits) {
  int64_t step = -1;
  const char* end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, step);
  return result.ec == std::errc() && result.ptr == end ? step : -1;
}

int64_t CheckStep(const SafetensorsFile& file, const TrainingSettings& settings) {
  const int64_t step = ParseStep(Get(file.metadata(), "step"));
  if (step < 1) throw UnreadableFile(file.path() + " does not say which step it is of");
  if (step > settings.steps) {
    throw std::runtime_error(file.path() + " is of step " + std::to_string(step) +
                             ", beyond the run's steps, " + std::to_string(settings.steps));
  }
  return step;
}

template <typename T>
std::vector<T> ReadAll(const SafetensorsFile& file, const std::string& name, size_t most) {
  const SafetensorsFile::Tensor* tensor = file.Find(name);
  if (tensor == nullptr) throw UnreadableFile(file.path() + " has no tensor " + name);
  const uint64_t count = (tensor->end - tensor->begin) / sizeof(T);
  if (count > most) throw UnreadableFile(file.path() + " has too large a tensor " + name);
  std::vector<T> values(count);
  file.Read(name, std::span(values));
  return values;
}

std::string FileName(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
  return std::string(kFilePrefix) + digits + std::string(kFileSuffix);
}

// The step of a checkpoint's file name, or -1 for another file.
int64_t StepOf(std::string_view file) {
  if (!file.starts_with(kFilePrefix) || !file.ends_with(kFileSuffix)) return -1;
  file.remove_prefix(kFilePrefix.size());
  file.remove_suffix(kFileSuffix.size());
  return ParseStep(file);
}

}  // namespace

int64_t LoadCheckpoint(const std::string& path, const TrainingState& state) {
  const SafetensorsFile file(path);
  if (Get(file.metadata(), "format") != kFormat) {
    throw UnreadableFile(path + " is no checkpoint to resume from; init_file takes weights");
  }
  // Before anything is changed, and before settings that only damage made differ.
  file.VerifyChecksum();
  CheckFingerprint(file, state);
  const int64_t step = CheckStep(file, state.settings);
  ForEachTensor(state.learner, [&](const std::string& name, const std::vector<int64_t>& shape,
                                   std::span<float> values) {
    CheckShape(file, name, shape);
    file.Read(name, values);
  });
  state.data.Restore(ReadAll<uint64_t>(file, kDataName, state.data.State().size()));
  state.spikes.set_window(ReadAll<double>(file, kLossesName, kMostLosses));
  return step;
}

std::string PutAside(const std::string& path) {
  const std::string aside = path + ".unreadable";
  std::error_code error;
  std::filesystem::rename(path, aside, error);
  if (!error) return "it is kept as " + aside;
  if (error == std::errc::no_such_file_or_directory) return "it is gone";
  throw std::runtime_error(path + " cannot be read, and cannot be renamed: " + error.message());
}

CheckpointFolder::CheckpointFolder(const std::string& path, int64_t keep)
    : path_(path), keep_(std::max<int64_t>(1, keep)) {
  const std::error_code error = Make();
  if (error && error != std::errc::no_space_on_device) {
    throw std::runtime_error("checkpoint_directory " + path_ +
                             " cannot be made: " + error.message());
  }
}

std::error_code CheckpointFolder::Make() const {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path_, error) || !fs::create_directories(path_, error)) return error;
  fs::permissions(path_, fs::perms::owner_all, error);
  return error;
}

CheckpointFolder::Checkpoint CheckpointFolder::Write(int64_t step, const TrainingState& state) {
  const std::vector<uint64_t> data = state.data.State();
  const std::vector<double> losses = state.spikes.window();
  std::vector<TensorToWrite> tensors;
  ForEachTensor(state.learner,
                [&](const std::string& name, const std::vector<int64_t>& shape,
                    std::span<const float> values) { tensors.emplace_back(name, shape, values); });
  tensors.emplace_back(kDataName, std::vector{static_cast<int64_t>(data.size())}, data);
  tensors.emplace_back(kLossesName, std::vector{static_cast<int64_t>(losses.size())}, losses);
  Checkpoint checkpoint = {.file = FileName(step)};
  Make();  // where it is missing and cannot be made, writing says so
  try {
    checkpoint.bytes = WriteSafetensors(path_ + "/" + checkpoint.file, MakeMetadata(step, state),
                                        std::move(tensors));
  } catch (const std::runtime_error& error) {
    throw CheckpointNotWritten("no checkpoint of step " + std::to_string(step) + ": " +
                               error.what());
  }
  RemoveOld(step);
  return checkpoint;
}

void CheckpointFolder::RemoveOld(int64_t step) const {
  std::error_code ignored;  // an old file that stays does no harm
  std::vector<int64_t> steps;
  for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
    const int64_t other = StepOf(entry.path().filename().string());
    if (other >= 0 && other <= step) steps.push_back(other);
  }
  std::ranges::sort(steps, std::greater{});
  for (size_t i = static_cast<size_t>(keep_); i < steps.size(); ++i) {
    std::filesystem::remove(path_ + "/" + FileName(steps[i]), ignored);
  }
}

}  // namespace normlab::trainer
