// SIGTERM and SIGINT as calls on an ordinary thread.
#ifndef NORMLAB_SERVER_TRAINER_LINK_SIGNALS_H_
#define NORMLAB_SERVER_TRAINER_LINK_SIGNALS_H_

#include <functional>
#include <thread>

namespace normlab::trainer {

// Blocks both in the calling thread and in those it starts from now on. Until somebody watches,
// they wait.
void BlockStopSignals();

// Calls `on_signal` from a thread of its own for each signal, until destroyed. All threads of the
// process must have them blocked.
class StopSignals {
 public:
  explicit StopSignals(std::function<void(int signal)> on_signal);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  std::thread thread_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_SIGNALS_H_
