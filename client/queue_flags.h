// What submit, preset and article say about the queue: --priority, --hold, --after, --gpus,
// --gpu-memory, --exclusive.
#ifndef NORMLAB_CLIENT_QUEUE_FLAGS_H_
#define NORMLAB_CLIENT_QUEUE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/api_client.h"
#include "normlab/v1/run.pb.h"

namespace normlab::client {

class QueueFlags {
 public:
  void AddTo(CLI::App& command);

  // Reads what was given into `wanted`, a Run or a CreateExperimentRequest. Asks the server only
  // for the runs of --after.
  template <typename Wanted>
  absl::Status Apply(ApiClient& client, Wanted& wanted) const {
    wanted.set_priority(priority_);
    wanted.set_held(hold_);
    for (const std::string& text : after_) {
      absl::StatusOr<normlab::v1::Dependency> dependency = ParseDependency(client, text);
      if (!dependency.ok()) return dependency.status();
      *wanted.add_after() = *std::move(dependency);
    }
    if (gpus_ == 0 && gpu_memory_ == 0 && !exclusive_) return absl::OkStatus();
    normlab::v1::Resources& resources = *wanted.mutable_resources();
    resources.set_gpus(gpus_);
    resources.set_gpu_memory_bytes(gpu_memory_);
    resources.set_exclusive(exclusive_);
    return absl::OkStatus();
  }

  // "RUN" or "RUN:any": the run and what it must have come to. The last part counts as a condition
  // only when it is ok or any: names may have colons.
  static absl::StatusOr<normlab::v1::Dependency> ParseDependency(ApiClient& client,
                                                                 const std::string& text);

 private:
  std::string priority_;
  bool hold_ = false;
  std::vector<std::string> after_;
  int32_t gpus_ = 0;
  int64_t gpu_memory_ = 0;  // bytes
  bool exclusive_ = false;
};

// "8GiB", "500 MiB" or "1000000" as bytes; units are powers of 1024, and G is GiB. Nothing for any
// other text, and for more than there can be.
std::optional<int64_t> BytesFromText(const std::string& text);

// "the success of 01J9ZK…" or "the end of 01J9ZK…", for people.
std::string DependencyText(const normlab::v1::Dependency& dependency);

// "2 GPUs, 8.0 GiB of memory on each, shared with no other run"; empty when nothing was asked for.
std::string ResourcesText(const normlab::v1::Resources& resources);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_QUEUE_FLAGS_H_
