// Ctrl-C while something is being watched: it ends the watching, not the program's last words.
#ifndef NORMLAB_CLIENT_INTERRUPT_H_
#define NORMLAB_CLIENT_INTERRUPT_H_

#include <csignal>

namespace normlab::client {

// While it lives, the first SIGINT or SIGTERM is only noted; the second one ends the program as
// usual. At most one at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool Interrupted();

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_INTERRUPT_H_
