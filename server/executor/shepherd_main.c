/* normlab-shepherd --dir DIR --grace-ms N [--log-bytes N] -- TRAINER ARGS...
 * normlab-shepherd --warm -- TRAINER ARGS...
 *
 * Parent of one trainer, and the one process that knows how it really ended: it outlives the
 * server, which after a restart could not wait for a process that is not its child.
 *
 * It starts TRAINER in a process group of its own, at nice +5, output appended to DIR/log, and
 * writes DIR/shepherd.json. As child subreaper it inherits whatever the trainer's descendants leave
 * behind, also what moved to another group or session. When the trainer has ended it kills all
 * that, waits for it, writes DIR/exit.json and ends: exit.json means that nothing is left.
 *
 * SIGTERM: the trainer's group gets SIGTERM and, after the grace, everything SIGKILL. SIGRTMIN with
 * a value is the same with that many milliseconds of grace; of several requests the earliest end
 * counts. Should the shepherd itself be killed, the kernel kills the trainer at once
 * (PR_SET_PDEATHSIG, SIGKILL: a trainer that ends gracefully, or not, with nobody to report it
 * would hold its device's lease for ever; its spool keeps every record either way). What the
 * trainer itself had started is found by the server, through the environment it inherited.
 *
 * Descriptor 3, if there is one, is a lock on DIR/alive: whoever finds it taken knows that there is
 * a shepherd, though it may not have written shepherd.json yet. The trainer does not get it.
 *
 * The log is kept to about --log-bytes: it is looked at every second.
 *
 * With --warm it starts TRAINER ahead, and descriptor 3 is a line to the server, over which it is
 * told later what the first form's arguments would have been: see shepherd_warm.h. From then on all
 * is as above.
 *
 * It expects to be started with all signals blocked, so that none can end it before it listens. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/base/orders.h"
#include "server/executor/shepherd_files.h"
#include "server/executor/shepherd_warm.h"

enum {
  kKillAgainMs = 50,
  kLogCheckMs = 1000,
  kTrainerNice = 5,
  kGiven = 3, /* a descriptor: the lock, or the line to the server */
  kCannotStart = 127,
  kUsage = 2
};

struct Arguments {
  const char* directory;
  long grace_ms;
  long log_bytes; /* 0: the log may grow without end */
  char** trainer; /* its argv */
};

struct Attempt {
  pid_t trainer;
  int trainer_ended;
  int stopping;
  int killing;
  long long kill_at_ms;
  struct Ending ending;
};

static long long NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Time since boot, which nobody sets and which goes on while the machine sleeps. */
static double BootSeconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void Complain(const char* what) {
  dprintf(2, "normlab-shepherd: %s: %s\n", what, strerror(errno));
}

static int ParseArguments(int argc, char** argv, struct Arguments* arguments) {
  int i = 1;
  arguments->grace_ms = -1;
  for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
    char* end = NULL;
    if (strcmp(argv[i], "--dir") == 0) {
      arguments->directory = argv[i + 1];
    } else if (strcmp(argv[i], "--grace-ms") == 0) {
      arguments->grace_ms = strtol(argv[i + 1], &end, 10);
      if (end == argv[i + 1] || *end != '\0') return -1;
    } else if (strcmp(argv[i], "--log-bytes") == 0) {
      arguments->log_bytes = strtol(argv[i + 1], &end, 10);
      if (end == argv[i + 1] || *end != '\0') return -1;
    } else {
      return -1;
    }
  }
  arguments->trainer = argv + i + 1;
  return i + 1 < argc && arguments->directory != NULL && arguments->grace_ms >= 0 ? 0 : -1;
}

/* Everything that the folder must give before there is a trainer. Returns exit.json's file. */
static int Prepare(const char* path, int* directory) {
  *directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int log = *directory < 0
                      ? -1
                      : openat(*directory, "log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) {
    Complain(path);
    return -1;
  }
  close(log);
  const int file = ReserveExitFile(*directory);
  if (file < 0) Complain("cannot open exit.json.tmp");
  return file;
}

static void BecomeTrainer(char** argv, pid_t shepherd, int line) {
  sigset_t none;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != shepherd) _exit(kCannotStart); /* it died before the line above */
  if (nice(kTrainerNice) == -1 && errno != 0) Complain("cannot lower the priority");
  /* When memory runs out, the trainer goes, not the server nor this process. */
  const int adjust = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (adjust >= 0 && write(adjust, "500", 3) < 0) Complain("oom_score_adj");
  if (line >= 0 && dup2(line, kTrainerLine) < 0) _exit(kCannotStart);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execv(argv[0], argv);
  Complain(argv[0]);
  _exit(kCannotStart);
}

/* Plain fork: this process has one thread, and PR_SET_PDEATHSIG needs code before the exec. `line`
 * becomes the trainer's, unless it is -1. */
static pid_t StartTrainer(char** argv, int line) {
  const pid_t self = getpid();
  const pid_t trainer = fork();
  if (trainer == 0) {
    errno = 0;
    BecomeTrainer(argv, self, line);
  }
  if (trainer < 0) Complain("cannot fork");
  if (trainer > 0) setpgid(trainer, trainer); /* here too: the group exists from now on */
  return trainer;
}

/* Kills what was re-parented to us. A child's number cannot be another's: only we can wait for it.
 * Their own children come to us next and are killed in the next round. */
static void KillChildren(void) {
  DIR* proc = opendir("/proc");
  if (proc == NULL) return;
  for (const struct dirent* entry; (entry = readdir(proc)) != NULL;) {
    char path[300];
    char stat[1024];
    int parent = 0;
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const ssize_t length = read(file, stat, sizeof(stat) - 1);
    close(file);
    stat[length > 0 ? length : 0] = '\0';
    const char* after_name = strrchr(stat, ')');
    if (after_name != NULL && sscanf(after_name + 1, " %*c %d", &parent) == 1 &&
        parent == getpid()) {
      kill(atoi(entry->d_name), SIGKILL);
    }
  }
  closedir(proc);
}

static void KillAll(struct Attempt* attempt) {
  attempt->killing = 1;
  if (!attempt->trainer_ended) {
    attempt->ending.killed = 1;
    kill(-attempt->trainer, SIGKILL);
  }
  KillChildren();
}

static void RequestStop(struct Attempt* attempt, long grace_ms) {
  const long long at = NowMs() + grace_ms;
  if (!attempt->stopping || at < attempt->kill_at_ms) attempt->kill_at_ms = at;
  attempt->stopping = 1;
  if (attempt->trainer_ended) return;
  kill(-attempt->trainer, SIGTERM);
  kill(-attempt->trainer, SIGCONT); /* a suspended one would not notice */
}

static void Account(struct Attempt* attempt, const struct rusage* usage) {
  attempt->ending.cpu_seconds += usage->ru_utime.tv_sec + usage->ru_utime.tv_usec * 1e-6 +
                                 usage->ru_stime.tv_sec + usage->ru_stime.tv_usec * 1e-6;
  if (usage->ru_maxrss > attempt->ending.max_rss_kib) {
    attempt->ending.max_rss_kib = usage->ru_maxrss;
  }
}

/* Waits for whatever has ended. Returns 0 when there is nothing left to wait for. */
static int Reap(struct Attempt* attempt) {
  for (;;) {
    siginfo_t info = {0};
    /* Only look: until waited for, the trainer keeps its group's number from being reused. */
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return 0;
    if (info.si_pid == 0) return 1;
    const int is_trainer = info.si_pid == attempt->trainer && !attempt->trainer_ended;
    if (is_trainer) kill(-attempt->trainer, SIGKILL);
    struct rusage usage;
    int status;
    wait4(info.si_pid, &status, 0, &usage);
    Account(attempt, &usage);
    if (!is_trainer) continue;
    attempt->trainer_ended = 1;
    attempt->killing = 1;
    attempt->ending.wait_status = status;
  }
}

static void WaitForSignal(struct Attempt* attempt, long grace_ms) {
  sigset_t signals;
  long long wait_ms = 3600 * 1000;
  if (attempt->stopping) wait_ms = attempt->kill_at_ms - NowMs();
  if (wait_ms > kLogCheckMs) wait_ms = kLogCheckMs;
  if (attempt->killing) wait_ms = kKillAgainMs;
  if (wait_ms < 0) wait_ms = 0;
  const struct timespec timeout = {wait_ms / 1000, wait_ms % 1000 * 1000000};
  siginfo_t info;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGRTMIN);
  const int signal = sigtimedwait(&signals, &info, &timeout);
  if (signal == SIGTERM || signal == SIGINT) RequestStop(attempt, grace_ms);
  if (signal == SIGRTMIN) RequestStop(attempt, info.si_value.sival_int);
}

static void Watch(struct Attempt* attempt, int directory, const struct Arguments* arguments) {
  while (Reap(attempt)) {
    if (attempt->killing || (attempt->stopping && NowMs() >= attempt->kill_at_ms)) {
      KillAll(attempt);
    }
    CapLog(directory, 1, arguments->log_bytes);
    WaitForSignal(attempt, arguments->grace_ms);
  }
}

/* It never became an attempt: nothing of it is to be left. */
static int EndUnused(struct Attempt* attempt) {
  while (Reap(attempt)) {
    KillAll(attempt);
    WaitForSignal(attempt, 0);
  }
  return 1;
}

/* The attempt's trainer is started here, once everything else is prepared. Returns 0 or -1. */
static int BeginCold(struct Attempt* attempt, const struct Arguments* arguments) {
  attempt->trainer = StartTrainer(arguments->trainer, -1);
  return attempt->trainer < 0 ? -1 : 0;
}

/* The same with one that was started ahead. On failure it has not begun. */
static int BeginWarm(const struct Attempt* attempt, const struct Orders* orders,
                     const struct Arguments* arguments, const struct Waiting* waiting) {
  /* From now on the server's end shows on the line. The lock stays open as long as this process. */
  prctl(PR_SET_PDEATHSIG, 0);
  if (chdir(arguments->directory) != 0 || WaitForBegin(waiting) < 0) return -1;
  /* If it is gone, it has ended like any trainer: that is reported. */
  if (PassOn(waiting, orders, arguments->trainer) != 0) Complain("the trainer that was kept ready");
  kill(-attempt->trainer, SIGCONT); /* one that was suspended while it waited would never begin */
  close(waiting->server);
  close(waiting->line);
  close(waiting->trainer);
  return 0;
}

/* Starts the trainer of `shepherd --warm -- TRAINER ...` and waits for orders. Returns 0 or -1. */
static int WaitWarm(int argc, char** argv, struct Attempt* attempt, struct Orders* orders,
                    struct Waiting* waiting) {
  int ends[2];
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* with the server, even if somebody has stopped this process */
  if (argc < 4 || strcmp(argv[2], "--") != 0 || OpenLine(ends) != 0) return -1;
  attempt->trainer = StartTrainer(argv + 3, ends[1]);
  close(ends[1]);
  waiting->server = kGiven;
  waiting->line = ends[0];
  waiting->trainer = attempt->trainer < 0 ? -1 : OpenPidfd(attempt->trainer);
  if (waiting->trainer < 0 || WaitForOrders(waiting, orders) != 0) return -1;
  ShowArguments(orders, argc, argv);
  return TakeEnvironment(orders, "NORMLAB_ATTEMPT_DIR");
}

/* Signals wait until they are listened for, and whatever descendants leave behind comes here. */
static void SetUpProcess(void) {
  sigset_t every;
  fcntl(kGiven, F_SETFD, FD_CLOEXEC);
  sigfillset(&every);
  sigprocmask(SIG_SETMASK, &every, NULL);
  setsid(); /* fails only for the leader of a group, which then is no server's */
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(int argc, char** argv) {
  static struct Orders orders;
  struct Arguments arguments = {0};
  struct Attempt attempt = {0};
  const int warm = argc > 1 && strcmp(argv[1], "--warm") == 0;
  struct Waiting waiting;
  int directory;
  SetUpProcess();
  if (warm && WaitWarm(argc, argv, &attempt, &orders, &waiting) != 0) return EndUnused(&attempt);
  const double begin = BootSeconds();
  if (ParseArguments(warm ? orders.argc : argc, warm ? orders.argv : argv, &arguments) != 0) {
    dprintf(2, "usage: normlab-shepherd --dir DIR --grace-ms N -- TRAINER ARGS...\n");
    return warm ? EndUnused(&attempt) : kUsage;
  }
  const int exit_file = Prepare(arguments.directory, &directory);
  if (exit_file < 0) return EndUnused(&attempt);
  const int begun =
      warm ? BeginWarm(&attempt, &orders, &arguments, &waiting) : BeginCold(&attempt, &arguments);
  if (begun != 0) return EndUnused(&attempt);
  if (WriteShepherdFile(directory, attempt.trainer) != 0) Complain("cannot write shepherd.json");
  Watch(&attempt, directory, &arguments);
  attempt.ending.elapsed_seconds = BootSeconds() - begin;
  if (WriteExitFile(directory, exit_file, &attempt.ending) != 0) {
    Complain("cannot write exit.json");
    return 1;
  }
  return 0;
}
