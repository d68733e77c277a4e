// Faults of the disk and of the clock for a program under test, by LD_PRELOAD: the program itself
// knows nothing of it.
//
// NORMLAB_FAULT_CONTROL names a file of eight 64-bit numbers, which another process changes while
// the program runs:
//   0  not 0: writes to the database and to checkpoints, and new space for any file, fail with
//      ENOSPC
//   1  microseconds by which each sync of the database is late
//   2  not 0: syncs of the database fail with EIO
//   3  seconds that are added to the wall clock
//   4  counted up with each call that failed or was late
// The database is whatever has "normlab.db" in its name, a checkpoint what is in a folder of that
// name. Waits until a time of the wall clock are
// told to the kernel by the kernel's clock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kDiskFull, kSyncDelay, kSyncError, kClockOffset, kBitten, kNumbers };

static _Atomic int64_t* control;
static long (*real_syscall)(long, ...);

__attribute__((constructor)) static void Open(void) {
  real_syscall = dlsym(RTLD_NEXT, "syscall");
  const char* path = getenv("NORMLAB_FAULT_CONTROL");
  if (path == NULL) return;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* mapped = mmap(NULL, kNumbers * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) control = mapped;
}

static int64_t Number(int index) { return control == NULL ? 0 : atomic_load(&control[index]); }

static void Bite(void) { atomic_fetch_add(&control[kBitten], 1); }

static int PathHas(int fd, const char* part) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return strstr(path, part) != NULL;
}

static int IsDatabase(int fd) { return PathHas(fd, "normlab.db"); }

static int NoSpace(int fd) {
  if (Number(kDiskFull) == 0) return 0;
  if (!IsDatabase(fd) && !PathHas(fd, "/checkpoints/")) return 0;
  Bite();
  errno = ENOSPC;
  return 1;
}

ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t offset) {
  if (NoSpace(fd)) return -1;
  return real_syscall(SYS_pwrite64, fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  return pwrite64(fd, bytes, count, offset);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  if (NoSpace(fd)) return -1;
  return real_syscall(SYS_write, fd, bytes, count);
}

int posix_fallocate(int fd, off_t offset, off_t length) {
  static int (*real)(int, off_t, off_t);
  if (Number(kDiskFull) != 0) {
    Bite();
    return ENOSPC;
  }
  if (real == NULL) real = dlsym(RTLD_NEXT, "posix_fallocate");
  return real(fd, offset, length);
}

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  return posix_fallocate(fd, offset, length);
}

static int Sync(int fd, long call) {
  const int64_t delay = Number(kSyncDelay);
  const int error = Number(kSyncError) != 0;
  if ((delay > 0 || error) && IsDatabase(fd)) {
    Bite();
    if (delay > 0) usleep((useconds_t)delay);
    if (error) {
      errno = EIO;
      return -1;
    }
  }
  return (int)real_syscall(call, fd);
}

int fsync(int fd) { return Sync(fd, SYS_fsync); }
int fdatasync(int fd) { return Sync(fd, SYS_fdatasync); }

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) real = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += Number(kClockOffset);
  }
  return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* now) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  if (now != NULL) *now = time.tv_sec;
  return time.tv_sec;
}

// Waits of std::condition_variable until a time of the wall clock.
int pthread_cond_timedwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex,
                           const struct timespec* restrict until) {
  static int (*real)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
  if (real == NULL) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  struct timespec kernels = *until;
  kernels.tv_sec -= Number(kClockOffset);
  if (kernels.tv_sec < 0) kernels.tv_sec = 0;
  return real(condition, mutex, &kernels);
}

// Waits of absl::Mutex.
long syscall(long number, ...) {
  va_list list;
  long a[6];
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  struct timespec kernels;
  if (number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0 && a[3] != 0) {
    kernels = *(const struct timespec*)a[3];
    kernels.tv_sec -= Number(kClockOffset);
    if (kernels.tv_sec < 0) kernels.tv_sec = 0;
    a[3] = (long)&kernels;
  }
  return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
