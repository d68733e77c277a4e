// An observer that keeps everything.
#ifndef NORMLAB_TESTS_UNIT_TRAINER_RECORDER_H_
#define NORMLAB_TESTS_UNIT_TRAINER_RECORDER_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "server/trainer/trainer.h"

namespace normlab::trainer {

class Recorder final : public Observer {
 public:
  void OnModel(const ModelSummary& summary) override { model = summary; }

  void OnSeries(std::span<const std::string> declared) override {
    names.insert(names.end(), declared.begin(), declared.end());
  }

  void OnStep(int64_t step, std::span<const Observation> observations) override {
    steps.push_back(step);
    for (const Observation& observation : observations) {
      series[names[observation.series]].push_back(observation.value);
    }
  }

  void OnCheckpoint(int64_t step, const std::string& file, int64_t /*bytes*/) override {
    checkpoints[step] = file;
  }

  Request Requested() override {
    if (steps.empty()) return Request::kGoOn;
    if (stop_after > 0 && static_cast<int64_t>(steps.size()) >= stop_after) return Request::kStop;
    if (pause_at == steps.back()) return Request::kPause;
    return probe_at == steps.back() ? Request::kProbe : Request::kGoOn;
  }

  int64_t stop_after = 0;  // 0: never
  int64_t pause_at = 0;
  int64_t probe_at = 0;                        // measured is the step after it
  std::map<int64_t, std::string> checkpoints;  // file by step
  ModelSummary model;
  std::vector<std::string> names;
  std::vector<int64_t> steps;
  std::map<std::string, std::vector<double>> series;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_UNIT_TRAINER_RECORDER_H_
