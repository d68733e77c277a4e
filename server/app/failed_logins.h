// Notes failed authentications in the log: from where, and never the token. Whoever tries many gets
// no more than a line a second for it. Thread-safe.
#ifndef NORMLAB_SERVER_APP_FAILED_LOGINS_H_
#define NORMLAB_SERVER_APP_FAILED_LOGINS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "server/base/clock.h"
#include "server/base/mutex.h"

namespace normlab::app {

class FailedLogins {
 public:
  // `log` is called for what is noted: the peer, and how many others since the line before were
  // left out.
  using Log = std::function<void(std::string_view origin, int64_t left_out)>;
  FailedLogins(const Clock& clock, Log log) : clock_(clock), log_(std::move(log)) {}

  void Note(std::string_view origin) ABSL_LOCKS_EXCLUDED(mutex_) {
    int64_t left_out = 0;
    {
      MutexLock lock(mutex_);
      const auto now = clock_.Now();
      if (latest_ && now - *latest_ < kPause) {
        ++left_out_;
        return;
      }
      latest_ = now;
      left_out = std::exchange(left_out_, 0);
    }
    log_(origin, left_out);
  }

 private:
  static constexpr std::chrono::seconds kPause{1};

  const Clock& clock_;
  const Log log_;
  Mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> latest_ ABSL_GUARDED_BY(mutex_);
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_FAILED_LOGINS_H_
