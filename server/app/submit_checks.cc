#include "server/app/submit_checks.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "server/base/gpu_context.h"
#include "server/base/strings.h"
#include "server/domain/model_size.h"
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

std::string WhyNotSoMany(int32_t gpus, const std::string& device, size_t suitable,
                         const std::string& none, int64_t gpus_of_a_run) {
  if (gpus < 0) return StrCat(gpus, " is negative; 0 means one");
  if (static_cast<size_t>(gpus) > suitable) {
    if (suitable == 0) {
      return StrCat(gpus, " are asked for and ", none, "; leave it out");
    }
    if (device != "auto" && device != "gpu") {
      return StrCat(gpus, " are asked for and ", device, " is one; use device gpu");
    }
    return StrCat(gpus, " are asked for and this machine has ", suitable);
  }
  if (gpus <= std::max<int64_t>(1, gpus_of_a_run)) return "";
  return StrCat(gpus, " are asked for and a trainer of this normlab uses ", gpus_of_a_run,
                "; leave it out, and train several runs at a time on several GPUs");
}

std::string Asked(int64_t bytes) {
  return StrCat(bytes, " (", Gibibytes(bytes), ") are asked for and ");
}

std::string WhyNotSoMuch(int64_t bytes, const std::vector<const Device*>& suitable,
                         const std::string& none) {
  if (bytes < 0) return StrCat(bytes, " is negative; 0 means what the settings need");
  if (bytes == 0) return "";
  if (suitable.empty()) return StrCat(Asked(bytes), none, "; leave it out");
  if (bytes <= kGpuContextBytes) {
    return StrCat(Asked(bytes), "CUDA itself is counted with ", Gibibytes(kGpuContextBytes),
                  "; ask for more, or leave it out for what the settings need");
  }
  const Device& largest = **std::ranges::max_element(suitable, {}, &Device::memory_bytes);
  if (bytes <= largest.memory_bytes) return "";
  return StrCat(Asked(bytes), "the largest GPU, ", largest.id, ", has ", largest.memory_bytes, " (",
                Gibibytes(largest.memory_bytes), ")");
}

// Of a run that must have a GPU and says nothing about its memory.
std::string WhyTooLarge(const v1::Run& run, const std::vector<const Device*>& suitable) {
  if (run.device() == "auto" || suitable.empty()) return "";
  const int64_t bytes = domain::GpuMemoryBytes(run.effective_spec());
  const Device& largest = **std::ranges::max_element(suitable, {}, &Device::memory_bytes);
  if (bytes <= largest.memory_bytes) return "";
  return StrCat("these settings need about ", Gibibytes(bytes), " of a GPU and the largest, ",
                largest.id, ", has ", Gibibytes(largest.memory_bytes),
                "; make batch_size or the model smaller");
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

std::vector<FieldViolation> CheckResources(const std::string& prefix, const v1::Run& run,
                                           const std::vector<Device>& devices,
                                           int64_t gpus_of_a_run) {
  std::vector<FieldViolation> wrong;
  const std::string field = prefix + "resources";
  const std::string& device = run.device();
  const v1::Resources& resources = run.resources();
  const auto named = std::ranges::find(devices, device, &Device::id);
  const bool is_cpu =
      device == "cpu" || (named != devices.end() && named->kind == DeviceKind::kCpu);
  if (is_cpu && WantsGpu(resources)) {
    wrong.push_back({field, StrCat("are those of a GPU, and the device is ", device,
                                   "; leave them out, or use device gpu")});
    return wrong;
  }
  std::vector<const Device*> suitable;
  std::string none = "this machine has no GPU";
  for (const Device& one : devices) {
    const bool fits = device == "auto" || device == "gpu" || device == one.id;
    if (!fits || one.kind != DeviceKind::kGpu) continue;
    if (!one.unavailable_for_good) suitable.push_back(&one);
    if (one.unavailable_for_good) none = StrCat("no GPU can be used: ", one.unavailable_reason);
  }
  std::string why = WhyNotSoMany(resources.gpus(), device, suitable.size(), none, gpus_of_a_run);
  if (!why.empty()) wrong.push_back({field + ".gpus", std::move(why)});
  const int64_t bytes = resources.gpu_memory_bytes();
  why = bytes == 0 ? WhyTooLarge(run, suitable) : WhyNotSoMuch(bytes, suitable, none);
  if (!why.empty()) wrong.push_back({field + ".gpu_memory_bytes", std::move(why)});
  return wrong;
}

void ApplyDefaults(const v1::CreateExperimentRequest& request, v1::Run& run) {
  if (run.priority().empty()) run.set_priority(request.priority());
  if (request.held()) run.set_held(true);
  if (run.after().empty()) *run.mutable_after() = request.after();
  if (!run.has_resources()) *run.mutable_resources() = request.resources();
}

}  // namespace normlab::app
