#include "server/scheduler/nvml.h"

#include <dlfcn.h>

#include <memory>

#include "server/base/log.h"
#include "server/base/strings.h"

namespace normlab::scheduler {
namespace {

// The few declarations needed, after NVML's API reference; nvml.h is not required to build.
using NvmlDevice = struct NvmlDeviceOpaque*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr int kSuccess = 0;
constexpr unsigned kTextSize = 96;

struct LibraryCloser {
  void operator()(void* library) const { dlclose(library); }
};

struct Nvml {
  std::unique_ptr<void, LibraryCloser> library;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;

  template <typename F>
  bool Find(const char* symbol, F& function) {
    function = reinterpret_cast<F>(dlsym(library.get(), symbol));
    return function != nullptr;
  }

  bool Open() {
    library.reset(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
    return library != nullptr && Find("nvmlInit_v2", init) && Find("nvmlShutdown", shutdown) &&
           Find("nvmlDeviceGetCount_v2", count) &&
           Find("nvmlDeviceGetHandleByIndex_v2", handle) && Find("nvmlDeviceGetName", name) &&
           Find("nvmlDeviceGetUUID", uuid) && Find("nvmlDeviceGetMemoryInfo", memory);
  }
};

}  // namespace

std::vector<Device> FindGpus() {
  Nvml nvml;
  std::vector<Device> gpus;
  if (!nvml.Open()) return gpus;
  if (const int code = nvml.init(); code != kSuccess) {
    LogWarning("NVML found no driver", {{"code", StrCat(code)}});
    return gpus;
  }
  unsigned count = 0;
  nvml.count(&count);
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice handle = nullptr;
    char name[kTextSize] = "", uuid[kTextSize] = "";
    NvmlMemory memory{};
    if (nvml.handle(i, &handle) != kSuccess || nvml.uuid(handle, uuid, kTextSize) != kSuccess) {
      LogWarning("a GPU does not answer", {{"index", StrCat(i)}});
      continue;
    }
    nvml.name(handle, name, kTextSize);
    nvml.memory(handle, &memory);
    Device device;
    device.id = StrCat("gpu:", i);
    device.kind = DeviceKind::kGpu;
    device.name = name;
    device.uuid = uuid;
    device.memory_bytes = static_cast<int64_t>(memory.total);
    gpus.push_back(std::move(device));
  }
  nvml.shutdown();
  return gpus;
}

}  // namespace normlab::scheduler
