/* What the shepherd leaves in its attempt's folder for the server, now or after a restart. All
 * functions return 0, or -1 with errno. */
#ifndef NORMLAB_SERVER_EXECUTOR_SHEPHERD_FILES_H_
#define NORMLAB_SERVER_EXECUTOR_SHEPHERD_FILES_H_

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Field 22 of /proc/PID/stat, or 0. */
unsigned long long StartTicks(pid_t pid);

/* Writes shepherd.json: who this process and its trainer are, beyond their numbers. */
int WriteShepherdFile(int directory, pid_t trainer);

/* Takes the disk space that exit.json will need, unless it is taken already: a full disk must not
 * hide how a run ended. The server does so before there is a shepherd, so that a run for which
 * there is no room waits, and the shepherd to have it. Returns the file. */
int ReserveExitFile(int directory);

/* Keeps the log, descriptor `log` of a file that is written at its end, to about `limit` bytes:
 * when it is longer, its last `limit` bytes become log.1 and it begins anew. What is written
 * between the two may be lost. Returns 1 when it has done so. */
int CapLog(int directory, int log, long long limit);

struct Ending {
  int wait_status;        /* of the trainer, as wait gives it */
  int killed;             /* by the shepherd, since it did not end when asked to */
  long max_rss_kib;       /* the largest of all processes */
  double cpu_seconds;     /* of all processes */
  double elapsed_seconds; /* since the shepherd began; time asleep counts */
};

/* Makes exit.json appear, whole and on disk. */
int WriteExitFile(int directory, int file, const struct Ending* ending);

#ifdef __cplusplus
}
#endif

#endif /* NORMLAB_SERVER_EXECUTOR_SHEPHERD_FILES_H_ */
