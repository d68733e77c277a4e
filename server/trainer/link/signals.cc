#include "server/trainer/link/signals.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace normlab::trainer {
namespace {

constexpr int kEnd = SIGUSR1;  // only ever sent to the thread itself

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, kEnd}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

void BlockStopSignals() {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

StopSignals::StopSignals(std::function<void(int)> on_signal)
    : thread_([on_signal = std::move(on_signal)] {
        const sigset_t signals = Signals();
        for (int signal; sigwait(&signals, &signal) == 0 && signal != kEnd;) on_signal(signal);
      }) {}

StopSignals::~StopSignals() {
  pthread_kill(thread_.native_handle(), kEnd);
  thread_.join();
}

}  // namespace normlab::trainer
