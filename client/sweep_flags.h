// A sweep on the command line: --grid layers=2,6,12, --grid learning_rate=5e-4:8e-3:log5,
// --random learning_rate=1e-4:1e-2:log --samples 20, --list FILE.jsonl, --seeds 3.
#ifndef NORMLAB_CLIENT_SWEEP_FLAGS_H_
#define NORMLAB_CLIENT_SWEEP_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/settings_flags.h"
#include "normlab/v1/experiment_service.pb.h"

namespace normlab::client {

// "layers=2,6,12", or numbers of a range: "seed=0:4" every integer, "dropout=0:0.5:6" evenly,
// "learning_rate=5e-4:8e-3:log5" evenly by their logarithms. Whether values are in range is the
// server's to say.
absl::StatusOr<normlab::v1::SweepAxis> ParseGridAxis(const std::string& text);

// "placement=pre,post", or numbers anywhere in a range: "dropout=0:0.5",
// "learning_rate=1e-4:1e-2:log".
absl::StatusOr<normlab::v1::SweepAxis> ParseRandomAxis(const std::string& text);

class SweepFlags {
 public:
  void AddTo(CLI::App& command);

  // What the flags say. With --random, each combination of --grid, --list and --seeds has every
  // draw, and they become the sweep's list. INVALID_ARGUMENT says what is wrong.
  absl::StatusOr<normlab::v1::Sweep> Build() const;

  const SettingsFlags& settings() const { return settings_; }

 private:
  absl::Status AddList(normlab::v1::Sweep& sweep) const;
  void AddSeeds(normlab::v1::Sweep& sweep) const;
  absl::Status AddDraws(normlab::v1::Sweep& sweep) const;
  absl::Status AddEarlyStop(normlab::v1::Sweep& sweep) const;

  SettingsFlags settings_;
  std::vector<std::string> grid_, random_;
  std::string list_;  // path of a file
  int32_t seeds_ = 0;
  int32_t samples_ = 0;
  uint64_t sample_seed_ = 0;
  double quantile_ = 0;
  std::vector<int64_t> stop_steps_;
  int32_t minimum_peers_ = 0;
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_SWEEP_FLAGS_H_
