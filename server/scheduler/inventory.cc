#include "server/scheduler/inventory.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "server/base/files.h"
#include "server/base/strings.h"

namespace normlab::scheduler {
namespace {

constexpr char kCgroupRoot[] = "/sys/fs/cgroup";

// The unified hierarchy's line of /proc/self/cgroup is "0::/path".
std::filesystem::path OwnGroup() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

// `group` and its parents below `root`, innermost first, `root` last.
std::vector<std::filesystem::path> Ancestors(const std::filesystem::path& root,
                                             std::filesystem::path group) {
  std::vector<std::filesystem::path> paths;
  while (!group.empty()) {
    paths.push_back(root / group);
    const std::filesystem::path parent = group.parent_path();
    if (parent == group) break;
    group = parent;
  }
  paths.push_back(root);
  return paths;
}

int64_t AffinityCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return sysconf(_SC_NPROCESSORS_ONLN);
  return CPU_COUNT(&set);
}

}  // namespace

double QuotaCores(const std::filesystem::path& root, const std::filesystem::path& group) {
  double cores = 0;
  for (const std::filesystem::path& path : Ancestors(root, group)) {
    std::ifstream file(path / "cpu.max");
    std::string quota;
    double period = 0;
    if (!(file >> quota >> period) || quota == "max" || period <= 0) continue;
    const double here = std::strtod(quota.c_str(), nullptr) / period;
    if (here > 0 && (cores == 0 || here < cores)) cores = here;
  }
  return cores;
}

int64_t UsableCores() {
  int64_t cores = AffinityCores();
  const double quota = QuotaCores(kCgroupRoot, OwnGroup());
  if (quota > 0) cores = std::min(cores, static_cast<int64_t>(std::floor(quota)));
  return std::max<int64_t>(1, cores);
}

int64_t UsableMemory() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  for (const std::filesystem::path& path : Ancestors(kCgroupRoot, OwnGroup())) {
    std::ifstream file(path / "memory.max");
    int64_t limit = 0;
    if (file >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

std::vector<Device> CpuSlots(int64_t cpu_slots) {
  const int64_t slots = cpu_slots > 0 ? cpu_slots : UsableCores();
  std::vector<Device> devices;
  for (int64_t i = 0; i < slots; ++i) {
    Device device;
    device.id = StrCat("cpu:", i);
    device.kind = DeviceKind::kCpu;
    device.name = StrCat("CPU slot ", i);
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace normlab::scheduler
