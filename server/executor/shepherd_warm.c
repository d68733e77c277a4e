#define _GNU_SOURCE
#include "server/executor/shepherd_warm.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int OpenLine(int ends[2]) { return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends); }

int OpenPidfd(pid_t child) { return (int)syscall(SYS_pidfd_open, child, 0); }

/* Those that end a shepherd which has no attempt yet; all are blocked. */
static int OpenSignals(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signalfd(-1, &signals, SFD_CLOEXEC);
}

/* One message of the trainer, passed on. -1 when it has ended. */
static int HearTrainer(const struct Waiting* waiting) {
  char said;
  if (recv(waiting->line, &said, 1, MSG_DONTWAIT) != 1) return errno == EAGAIN ? 0 : -1;
  /* Whether the server is still there shows when it is heard. */
  if (send(waiting->server, &said, 1, MSG_NOSIGNAL) < 0 && errno != EPIPE) return -1;
  return 0;
}

/* Waits until the server says something: 0. -1 when one of the three is over. */
static int WaitForServer(const struct Waiting* waiting) {
  const int signals = OpenSignals();
  int result = signals < 0 ? -1 : 1;
  while (result == 1) {
    struct pollfd fds[] = {{waiting->server, POLLIN, 0},
                           {waiting->line, POLLIN, 0},
                           {waiting->trainer, POLLIN, 0},
                           {signals, POLLIN, 0}};
    if (poll(fds, 4, -1) < 0) {
      if (errno != EINTR) result = -1;
    } else if (fds[0].revents != 0) { /* first: what it was told counts */
      result = 0;
    } else if (fds[2].revents != 0 || fds[3].revents != 0) {
      result = -1;
    } else if (fds[1].revents != 0 && HearTrainer(waiting) != 0) {
      result = -1;
    }
  }
  if (signals >= 0) close(signals); /* nothing was read from it: the signal is still pending */
  return result;
}

int WaitForOrders(const struct Waiting* waiting, struct Orders* orders) {
  if (WaitForServer(waiting) != 0) return -1;
  const ssize_t length = recv(waiting->server, orders->text, sizeof(orders->text), MSG_TRUNC);
  if (length <= 0 || length > (ssize_t)sizeof(orders->text)) return -1;
  orders->length = (size_t)length;
  return ParseOrders(orders);
}

int WaitForBegin(const struct Waiting* waiting) {
  const char prepared = kSayPrepared;
  char said = 0;
  char room[CMSG_SPACE(sizeof(int))];
  struct iovec data = {&said, 1};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
  int lock = -1;
  if (send(waiting->server, &prepared, 1, MSG_NOSIGNAL) != 1) return -1;
  if (WaitForServer(waiting) != 0) return -1;
  if (recvmsg(waiting->server, &message, MSG_CMSG_CLOEXEC) != 1 || said != kSayBegin) return -1;
  const struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == NULL || header->cmsg_type != SCM_RIGHTS) return -1;
  memcpy(&lock, CMSG_DATA(header), sizeof(lock));
  return lock;
}

int PassOn(const struct Waiting* waiting, const struct Orders* orders, char** argv) {
  const size_t length = (size_t)(orders->text + orders->length - *argv);
  return send(waiting->line, *argv, length, MSG_NOSIGNAL) == (ssize_t)length ? 0 : -1;
}
