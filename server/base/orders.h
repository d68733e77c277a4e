/* What a process that was started ahead of its work is told: the arguments and the environment that
 * it would have had otherwise. Plain C, for the shepherd; the trainer and the server use it as
 * well.
 *
 * As text it is the arguments, an empty one, and the entries of the environment ("NAME=value"),
 * each with its 0 byte. No argument may be empty. */
#ifndef NORMLAB_SERVER_BASE_ORDERS_H_
#define NORMLAB_SERVER_BASE_ORDERS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kOrdersBytes = 32768, kOrdersWords = 128 };

struct Orders {
  char text[kOrdersBytes];
  size_t length;
  char* words[kOrdersWords + 2];
  int argc;
  char** argv;        /* ends with NULL; points into words, and these into text */
  char** environment; /* the same */
};

/* Finds argv and environment in the text, of which `length` bytes are there. Returns 0, or -1 for
 * what is no such text. */
int ParseOrders(struct Orders* orders);

/* Makes this process's environment that of the orders where they differ. The entry `shown` is
 * written over the one that the process was started with, so that /proc/PID/environ has it too: the
 * kernel shows the memory where the first environment lay. Returns 0, or -1 when there is no entry
 * of that name, or it has less room, or memory is short. Call it before there are other threads. */
int TakeEnvironment(const struct Orders* orders, const char* shown);

/* Writes the orders' arguments over those that this process was started with, for ps; not at all
 * when there is too little room. */
void ShowArguments(const struct Orders* orders, int argc, char** argv);

#ifdef __cplusplus
}
#endif

#endif /* NORMLAB_SERVER_BASE_ORDERS_H_ */
