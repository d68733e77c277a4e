#include "server/app/submit_checks.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "server/base/strings.h"
#include "server/domain/priority.h"

namespace normlab::app {
namespace {

using domain::FieldViolation;
using scheduler::Device;
using scheduler::DeviceKind;

// "24.0 GiB"
std::string Gibibytes(int64_t bytes) {
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
}

// Asks for something that only a GPU has.
bool WantsGpu(const v1::Resources& resources) {
  return resources.gpus() > 0 || resources.gpu_memory_bytes() > 0 || resources.exclusive();
}

std::string WhyNotSoMany(int32_t gpus, const std::string& device, size_t suitable) {
  if (gpus < 0) return StrCat(gpus, " is negative; 0 means one");
  if (static_cast<size_t>(gpus) <= suitable) return "";
  if (suitable == 0) return StrCat(gpus, " are asked for and this machine has none; leave it out");
  if (device != "auto" && device != "gpu") {
    return StrCat(gpus, " are asked for and ", device, " is one; use device gpu");
  }
  return StrCat(gpus, " are asked for and this machine has ", suitable);
}

std::string WhyNotSoMuch(int64_t bytes, const std::vector<const Device*>& suitable) {
  if (bytes < 0) return StrCat(bytes, " is negative; 0 means what the settings need");
  if (bytes == 0) return "";
  if (suitable.empty()) {
    return StrCat(bytes, " (", Gibibytes(bytes),
                  ") are asked for and this machine has no GPU; leave it out");
  }
  const Device& largest = **std::ranges::max_element(suitable, {}, &Device::memory_bytes);
  if (bytes <= largest.memory_bytes) return "";
  return StrCat(bytes, " (", Gibibytes(bytes), ") are asked for and the largest GPU, ", largest.id,
                ", has ", largest.memory_bytes, " (", Gibibytes(largest.memory_bytes), ")");
}

}  // namespace

std::vector<FieldViolation> CheckPriority(const std::string& field, const std::string& priority) {
  if (domain::PriorityNumber(priority)) return {};
  return {{field, StrCat("there is no priority \"", priority.substr(0, 64), "\"; use one of ",
                         domain::kPriorities)}};
}

absl::Status MayGive(const Principal& principal, const std::string& field,
                     const std::string& priority) {
  if (principal.role == "admin" || domain::PriorityNumber(priority).value_or(0) <= 0) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(StrCat(field, ": only an admin may give high, and ",
                                            principal.user, " is a ", principal.role,
                                            "; use normal or low"));
}

std::vector<FieldViolation> CheckResources(const std::string& prefix, const std::string& device,
                                           const v1::Resources& resources,
                                           const std::vector<Device>& devices) {
  std::vector<FieldViolation> wrong;
  const std::string field = prefix + "resources";
  const auto named = std::ranges::find(devices, device, &Device::id);
  const bool is_cpu =
      device == "cpu" || (named != devices.end() && named->kind == DeviceKind::kCpu);
  if (is_cpu && WantsGpu(resources)) {
    wrong.push_back({field, StrCat("are those of a GPU, and the device is ", device,
                                   "; leave them out, or use device gpu")});
    return wrong;
  }
  std::vector<const Device*> suitable;
  for (const Device& one : devices) {
    const bool fits = device == "auto" || device == "gpu" || device == one.id;
    if (fits && one.kind == DeviceKind::kGpu) suitable.push_back(&one);
  }
  if (std::string why = WhyNotSoMany(resources.gpus(), device, suitable.size()); !why.empty()) {
    wrong.push_back({field + ".gpus", std::move(why)});
  }
  if (std::string why = WhyNotSoMuch(resources.gpu_memory_bytes(), suitable); !why.empty()) {
    wrong.push_back({field + ".gpu_memory_bytes", std::move(why)});
  }
  return wrong;
}

void ApplyDefaults(const v1::CreateExperimentRequest& request, v1::Run& run) {
  if (run.priority().empty()) run.set_priority(request.priority());
  if (request.held()) run.set_held(true);
  if (run.after().empty()) *run.mutable_after() = request.after();
  if (!run.has_resources()) *run.mutable_resources() = request.resources();
}

}  // namespace normlab::app
