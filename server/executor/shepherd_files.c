#define _GNU_SOURCE
#include "server/executor/shepherd_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The beginning of a file of /proc as a string; empty when it cannot be read. */
static void ReadProc(const char* path, char* text, size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : read(file, text, size - 1);
  text[length > 0 ? length : 0] = '\0';
  if (file >= 0) close(file);
}

unsigned long long StartTicks(pid_t pid) {
  char path[64];
  char stat[1024];
  unsigned long long ticks = 0;
  snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
  ReadProc(path, stat, sizeof(stat));
  /* The program's name, in parentheses, may hold both spaces and parentheses. */
  const char* after_name = strrchr(stat, ')');
  if (after_name == NULL) return 0;
  /* Fields 3 to 21 are skipped: a letter, then numbers. */
  sscanf(after_name + 1,
         " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
         &ticks);
  return ticks;
}

static int Replace(int directory, int file, const char* temporary, const char* name,
                   const char* text) {
  const ssize_t length = (ssize_t)strlen(text);
  if (pwrite(file, text, (size_t)length, 0) != length) return -1;
  if (ftruncate(file, length) != 0 || fsync(file) != 0) return -1;
  if (renameat(directory, temporary, directory, name) != 0) return -1;
  return fsync(directory);
}

int WriteShepherdFile(int directory, pid_t trainer) {
  char boot[64];
  char text[512];
  ReadProc("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
  boot[strcspn(boot, "\n")] = '\0';
  snprintf(text, sizeof(text),
           "{\"pid\": %d, \"start_ticks\": %llu, \"boot_id\": \"%s\", \"trainer_pid\": %d, "
           "\"trainer_start_ticks\": %llu}\n",
           (int)getpid(), StartTicks(getpid()), boot, (int)trainer, StartTicks(trainer));
  const int file =
      openat(directory, "shepherd.json.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  const int result = Replace(directory, file, "shepherd.json.tmp", "shepherd.json", text);
  close(file);
  return result;
}

/* What stands behind `offset` in the log becomes log.1. */
static int KeepLog(int directory, off_t offset) {
  const int from = openat(directory, "log", O_RDONLY | O_CLOEXEC);
  const int to = openat(directory, "log.1.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ssize_t copied = from < 0 || to < 0 ? -1 : 1;
  while (copied > 0) copied = sendfile(to, from, &offset, 1 << 20);
  if (copied == 0) copied = renameat(directory, "log.1.tmp", directory, "log.1");
  if (copied != 0) unlinkat(directory, "log.1.tmp", 0);
  if (from >= 0) close(from);
  if (to >= 0) close(to);
  return copied == 0 ? 0 : -1;
}

int CapLog(int directory, int log, long long limit) {
  struct stat info;
  if (limit <= 0 || fstat(log, &info) != 0 || info.st_size <= limit) return 0;
  const int kept = KeepLog(directory, info.st_size - limit);
  if (ftruncate(log, 0) != 0) return 0;
  dprintf(log, "normlab-shepherd: the log was longer than %lld bytes; %s\n", limit,
          kept == 0 ? "the last of it is in log.1" : "there was no room to keep it");
  return 1;
}

int ReserveExitFile(int directory) {
  const int file = openat(directory, "exit.json.tmp", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  const int error = posix_fallocate(file, 0, 4096);
  if (error == 0) return file;
  close(file);
  errno = error;
  return -1;
}

int WriteExitFile(int directory, int file, const struct Ending* ending) {
  char text[512];
  const int signaled = WIFSIGNALED(ending->wait_status);
  snprintf(text, sizeof(text),
           "{\"%s\": %d, \"killed\": %s, \"max_rss_bytes\": %lld, \"cpu_seconds\": %.3f, "
           "\"elapsed_seconds\": %.3f}\n",
           signaled ? "exit_signal" : "exit_code",
           signaled ? WTERMSIG(ending->wait_status) : WEXITSTATUS(ending->wait_status),
           ending->killed ? "true" : "false", (long long)ending->max_rss_kib * 1024,
           ending->cpu_seconds, ending->elapsed_seconds);
  return Replace(directory, file, "exit.json.tmp", "exit.json", text);
}
