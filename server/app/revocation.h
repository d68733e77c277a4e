// Tells whoever acts by a token that it counts no more: it was replaced, or its user removed.
#ifndef NORMLAB_SERVER_APP_REVOCATION_H_
#define NORMLAB_SERVER_APP_REVOCATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "server/base/mutex.h"

namespace normlab::app {

// One for each token, shared by everybody who acts by it. Thread-safe.
class Revocation {
 public:
  bool revoked() const { return revoked_.load(); }
  // OK, or UNAUTHENTICATED once it is revoked.
  absl::Status Check() const {
    if (!revoked()) return absl::OkStatus();
    return absl::UnauthenticatedError(
        "this token counts no more: it was replaced, or its user removed; log in again");
  }

  void Revoke() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    revoked_ = true;
    for (const auto& [id, bell] : bells_) bell();
  }

  // `bell` is rung under the lock, at once if it is too late already: it must be quick. Returns
  // what Unsubscribe takes, after which it does not ring any more.
  int64_t Subscribe(std::function<void()> bell) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (revoked_) bell();
    bells_[++latest_] = std::move(bell);
    return latest_;
  }
  void Unsubscribe(int64_t subscription) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    bells_.erase(subscription);
  }

 private:
  std::atomic<bool> revoked_ = false;
  Mutex mutex_;
  std::map<int64_t, std::function<void()>> bells_ ABSL_GUARDED_BY(mutex_);
  int64_t latest_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_REVOCATION_H_
