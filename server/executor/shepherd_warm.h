/* A shepherd that is started ahead of its attempt: it waits, with its trainer loaded, to be told
 * which attempt the two are to be. Plain C, one thread.
 *
 * The line to the server carries whole messages (SOCK_SEQPACKET): the trainer is loaded (shepherd),
 * orders (server, see server/base/orders.h), the attempt's folder is prepared (shepherd), begin
 * (server, with the lock on the attempt's `alive`). Before the last, everything can be taken back:
 * the server ends the shepherd and starts the attempt otherwise. What was not told to begin never
 * does, and ends when the server, the trainer or somebody with SIGTERM ends it. */
#ifndef NORMLAB_SERVER_EXECUTOR_SHEPHERD_WARM_H_
#define NORMLAB_SERVER_EXECUTOR_SHEPHERD_WARM_H_

#include <sys/types.h>

#include "server/base/orders.h"

enum {
  kTrainerLine = 3,   /* the trainer's descriptor of its line to the shepherd */
  kSayLoaded = 'l',   /* trainer to shepherd to server */
  kSayPrepared = 'p', /* shepherd to server */
  kSayBegin = 'b'     /* server to shepherd */
};

/* What a shepherd listens to while it waits: descriptors. */
struct Waiting {
  int server;  /* the line to it */
  int line;    /* that to the trainer */
  int trainer; /* a pidfd: its children may hold its end of the line */
};

/* Two ends of a line between shepherd and trainer, closed on exec. Returns 0, or -1 with errno. */
int OpenLine(int ends[2]);

/* Of a child of this process; -1 with errno. */
int OpenPidfd(pid_t child);

/* Waits for orders; tells the server when the trainer has loaded. -1: there will be none. */
int WaitForOrders(const struct Waiting* waiting, struct Orders* orders);

/* Says that the folder is prepared and waits to be told to begin. Returns the descriptor of the
 * lock, or -1: it will not begin. */
int WaitForBegin(const struct Waiting* waiting);

/* Gives the trainer its part of the orders: from `argv` on, which points into theirs. Returns 0, or
 * -1 with errno when it is gone. */
int PassOn(const struct Waiting* waiting, const struct Orders* orders, char** argv);

#endif /* NORMLAB_SERVER_EXECUTOR_SHEPHERD_WARM_H_ */
