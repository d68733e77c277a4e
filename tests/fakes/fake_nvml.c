/* A libnvidia-ml.so.1 whose GPUs are those of the text file that $FAKE_NVML names, read at every
 * count of the GPUs:
 *
 *   gpu UUID MIB_TOTAL MIB_USED PERCENT NAME    the next GPU
 *   mig UUID MIB_TOTAL MIB_USED NAME            an instance of the GPU before
 *   divided                                     the GPU before is divided, if nothing else says so
 *   process PID MIB                             on the GPU or instance before; MIB -1: not known
 *   lost                                        the GPU before has fallen off the bus
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 64, kSuccess = 0, kNotFound = 6, kTooSmall = 7, kNoDriver = 9, kLost = 15 };

struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct Gpu {
  char uuid[96], name[96];
  unsigned long long total, used;
  unsigned busy, parent; /* parent: index + 1 of the divided GPU, 0: none */
  int divided, lost;
  struct Process processes[kMost];
  unsigned process_count;
};

static struct Gpu gpus[kMost]; /* GPUs and instances, as in the file */
static unsigned gpu_count;

static void ReadState(void) {
  const char* path = getenv("FAKE_NVML");
  FILE* file = path == NULL ? NULL : fopen(path, "r");
  char line[256], word[16];
  unsigned parent = 0;
  gpu_count = 0;
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    struct Gpu* gpu = gpu_count == 0 ? NULL : &gpus[gpu_count - 1];
    long long total = 0, used = 0;
    if (sscanf(line, "%15s", word) != 1) continue;
    if (strcmp(word, "gpu") == 0 || strcmp(word, "mig") == 0) {
      gpu = &gpus[gpu_count++];
      memset(gpu, 0, sizeof(*gpu));
      if (word[0] == 'g') {
        sscanf(line, "%*s %95s %lld %lld %u %95[^\n]", gpu->uuid, &total, &used, &gpu->busy,
               gpu->name);
        parent = gpu_count;
      } else {
        sscanf(line, "%*s %95s %lld %lld %95[^\n]", gpu->uuid, &total, &used, gpu->name);
        gpu->parent = parent;
        gpus[parent - 1].divided = 1;
      }
      gpu->total = (unsigned long long)total << 20;
      gpu->used = (unsigned long long)used << 20;
    } else if (gpu != NULL && strcmp(word, "process") == 0) {
      struct Process* process = &gpu->processes[gpu->process_count++];
      sscanf(line, "%*s %u %lld", &process->pid, &used);
      process->used = used < 0 ? ~0ULL : (unsigned long long)used << 20;
    } else if (gpu != NULL && strcmp(word, "lost") == 0) {
      gpu->lost = 1;
    } else if (gpu != NULL && strcmp(word, "divided") == 0) {
      gpu->divided = 1;
    }
  }
  if (file != NULL) fclose(file);
}

int nvmlInit_v2(void) { return getenv("FAKE_NVML") == NULL ? kNoDriver : kSuccess; }
int nvmlShutdown(void) { return kSuccess; }

const char* nvmlErrorString(int code) {
  return code == kLost ? "GPU is lost" : code == kNoDriver ? "Driver Not Loaded" : "Not Found";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  ReadState();
  *count = 0;
  for (unsigned i = 0; i < gpu_count; ++i) *count += gpus[i].parent == 0;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct Gpu** device) {
  for (unsigned i = 0; i < gpu_count; ++i) {
    if (gpus[i].parent != 0 || index-- > 0) continue;
    *device = &gpus[i];
    return gpus[i].lost ? kLost : kSuccess;
  }
  return kNotFound;
}

int nvmlDeviceGetName(struct Gpu* gpu, char* text, unsigned size) {
  snprintf(text, size, "%s", gpu->name);
  return gpu->lost ? kLost : kSuccess;
}

int nvmlDeviceGetUUID(struct Gpu* gpu, char* text, unsigned size) {
  snprintf(text, size, "%s", gpu->uuid);
  return gpu->lost ? kLost : kSuccess;
}

struct Memory {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(struct Gpu* gpu, struct Memory* memory) {
  *memory = (struct Memory){gpu->total, gpu->total - gpu->used, gpu->used};
  return gpu->lost ? kLost : kSuccess;
}

struct Utilization {
  unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(struct Gpu* gpu, struct Utilization* busy) {
  *busy = (struct Utilization){gpu->busy, 0};
  return gpu->parent != 0 ? kNotFound : kSuccess; /* instances have none */
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct Gpu* gpu, unsigned* count,
                                            struct Process* processes) {
  const unsigned room = *count;
  *count = gpu->process_count;
  if (room < gpu->process_count) return kTooSmall;
  memcpy(processes, gpu->processes, gpu->process_count * sizeof(*processes));
  return kSuccess;
}

int nvmlDeviceGetMigMode(struct Gpu* gpu, unsigned* now, unsigned* pending) {
  *now = *pending = (unsigned)gpu->divided;
  return kSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(struct Gpu* gpu, unsigned* count) {
  (void)gpu;
  *count = 7;
  return kSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct Gpu* parent, unsigned index, struct Gpu** device) {
  for (unsigned i = 0; i < gpu_count; ++i) {
    if (gpus[i].parent != (unsigned)(parent - gpus) + 1 || index-- > 0) continue;
    *device = &gpus[i];
    return kSuccess;
  }
  return kNotFound;
}
