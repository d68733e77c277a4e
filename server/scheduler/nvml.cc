#include "server/scheduler/nvml.h"

#include <dlfcn.h>

#include <map>
#include <utility>

#include "server/base/log.h"
#include "server/base/strings.h"

namespace normlab::scheduler {
namespace {

// The few declarations needed, after NVML's API reference; nvml.h is not required to build.
using NvmlDevice = struct NvmlDeviceOpaque*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};
struct NvmlProcess {  // nvmlProcessInfo_t since version 2
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr unsigned kTextSize = 96;
constexpr unsigned long long kUnknownMemory = ~0ULL;
constexpr unsigned kMigEnabled = 1;

struct LibraryCloser {
  void operator()(void* library) const { dlclose(library); }
};

class Nvml : public GpuSource {
 public:
  ~Nvml() override {
    if (initialised_) shutdown_();
  }

  bool Open(const std::string& library) {
    library_.reset(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (library_ == nullptr || !FindAll()) return false;
    if (const int code = init_(); code != kSuccess) {
      LogWarning("NVML found no driver", {{"error", Text(code)}});
      return false;
    }
    initialised_ = true;
    return true;
  }

  std::vector<GpuReading> Read() override {
    std::vector<GpuReading> readings;
    unsigned count = 0;
    if (const int code = count_(&count); code != kSuccess) {
      LogWarning("the driver does not count its GPUs", {{"error", Text(code)}});
    }
    for (unsigned i = 0; i < count; ++i) {
      NvmlDevice device = nullptr;
      GpuReading gpu = {.id = StrCat("gpu:", i), .name = {}, .uuid = {}};
      if (const int code = handle_(i, &device); code != kSuccess) {
        gpu.fault = Fault(code);
        readings.push_back(Remember(std::move(gpu)));
      } else if (IsDivided(device)) {
        ReadInstances(device, gpu.id, readings);
      } else {
        readings.push_back(ReadOne(device, std::move(gpu)));
      }
    }
    return readings;
  }

 private:
  template <typename F>
  bool Find(const char* symbol, F& function) {
    function = reinterpret_cast<F>(dlsym(library_.get(), symbol));
    return function != nullptr;
  }

  bool FindAll() {
    // What divides GPUs, and what lists processes, older drivers lack.
    Find("nvmlDeviceGetMigMode", mig_mode_);
    Find("nvmlDeviceGetMaxMigDeviceCount", instance_count_);
    Find("nvmlDeviceGetMigDeviceHandleByIndex", instance_);
    Find("nvmlDeviceGetComputeRunningProcesses_v3", processes_);
    Find("nvmlDeviceGetUtilizationRates", utilization_);
    Find("nvmlErrorString", error_text_);
    return Find("nvmlInit_v2", init_) && Find("nvmlShutdown", shutdown_) &&
           Find("nvmlDeviceGetCount_v2", count_) &&
           Find("nvmlDeviceGetHandleByIndex_v2", handle_) && Find("nvmlDeviceGetName", name_) &&
           Find("nvmlDeviceGetUUID", uuid_) && Find("nvmlDeviceGetMemoryInfo", memory_);
  }

  std::string Text(int code) const {
    const char* text = error_text_ == nullptr ? nullptr : error_text_(code);
    return text == nullptr ? StrCat("NVML error ", code) : std::string(text);
  }
  std::string Fault(int code) const { return StrCat("the driver says: ", Text(code)); }

  bool IsDivided(NvmlDevice device) const {
    unsigned now = 0, pending = 0;
    return mig_mode_ != nullptr && instance_count_ != nullptr && instance_ != nullptr &&
           mig_mode_(device, &now, &pending) == kSuccess && now == kMigEnabled;
  }

  void ReadInstances(NvmlDevice parent, const std::string& id, std::vector<GpuReading>& readings) {
    unsigned most = 0;
    bool any = false;
    if (instance_count_(parent, &most) != kSuccess) most = 0;
    for (unsigned i = 0; i < most; ++i) {
      NvmlDevice device = nullptr;
      if (instance_(parent, i, &device) != kSuccess) continue;  // not every place is taken
      any = true;
      readings.push_back(ReadOne(device, {.id = StrCat(id, ":", i), .name = {}, .uuid = {}}));
    }
    if (any) return;
    GpuReading gpu = ReadOne(parent, {.id = id, .name = {}, .uuid = {}});
    if (gpu.fault.empty()) gpu.fault = "it is divided (MIG) and has no instance";
    readings.push_back(std::move(gpu));
  }

  GpuReading ReadOne(NvmlDevice device, GpuReading gpu) {
    char name[kTextSize] = "", uuid[kTextSize] = "";
    NvmlMemory memory{};
    int code = uuid_(device, uuid, kTextSize);
    if (code == kSuccess) code = name_(device, name, kTextSize);
    if (code == kSuccess) code = memory_(device, &memory);
    gpu.name = name;
    gpu.uuid = uuid;
    gpu.memory_bytes = static_cast<int64_t>(memory.total);
    gpu.used_bytes = static_cast<int64_t>(memory.used);
    if (code == kSuccess) code = ReadProcesses(device, gpu);
    if (code != kSuccess) gpu.fault = Fault(code);
    NvmlUtilization busy{};
    if (utilization_ != nullptr && utilization_(device, &busy) == kSuccess) {
      gpu.utilization = busy.gpu / 100.0;
    }
    return Remember(std::move(gpu));
  }

  int ReadProcesses(NvmlDevice device, GpuReading& gpu) const {
    if (processes_ == nullptr) return kSuccess;
    std::vector<NvmlProcess> found(32);
    unsigned count = static_cast<unsigned>(found.size());
    int code = processes_(device, &count, found.data());
    while (code == kInsufficientSize) {
      found.resize(count + 32);  // others may start meanwhile
      count = static_cast<unsigned>(found.size());
      code = processes_(device, &count, found.data());
    }
    if (code != kSuccess) return code;
    for (unsigned i = 0; i < count; ++i) {
      GpuProcess process = {.pid = static_cast<pid_t>(found[i].pid)};
      if (found[i].used_memory != kUnknownMemory) {
        process.memory_bytes = static_cast<int64_t>(found[i].used_memory);
      }
      gpu.processes.push_back(process);
    }
    return kSuccess;
  }

  // A GPU that has gone has no name any more; people still want to know which one it was.
  GpuReading Remember(GpuReading gpu) {
    GpuReading& known = known_[gpu.id];
    if (gpu.uuid.empty()) gpu.uuid = known.uuid;
    if (gpu.name.empty()) gpu.name = known.name;
    if (gpu.memory_bytes == 0) gpu.memory_bytes = known.memory_bytes;
    known = gpu;
    return gpu;
  }

  std::unique_ptr<void, LibraryCloser> library_;
  bool initialised_ = false;
  std::map<std::string, GpuReading> known_;  // by id, as last read

  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*handle_)(unsigned, NvmlDevice*) = nullptr;
  int (*name_)(NvmlDevice, char*, unsigned) = nullptr;
  int (*uuid_)(NvmlDevice, char*, unsigned) = nullptr;
  int (*memory_)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*utilization_)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*processes_)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
  int (*mig_mode_)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*instance_count_)(NvmlDevice, unsigned*) = nullptr;
  int (*instance_)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
  const char* (*error_text_)(int) = nullptr;
};

}  // namespace

std::unique_ptr<GpuSource> OpenNvml(const std::string& library) {
  auto nvml = std::make_unique<Nvml>();
  if (!nvml->Open(library)) return nullptr;
  return nvml;
}

}  // namespace normlab::scheduler
