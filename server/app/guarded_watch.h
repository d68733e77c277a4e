// A watch that ends as soon as the token by which it was opened counts no more.
#ifndef NORMLAB_SERVER_APP_GUARDED_WATCH_H_
#define NORMLAB_SERVER_APP_GUARDED_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/app/api.h"
#include "server/app/revocation.h"

namespace normlab::app {

// The revocation rings the watcher's bell, so that an idle stream hears of it as well; its next
// read is then UNAUTHENTICATED, which is how streams end.
class GuardedWatch : public Watch {
 public:
  GuardedWatch(std::unique_ptr<Watch> watch, std::shared_ptr<Revocation> revocation)
      : watch_(std::move(watch)), revocation_(std::move(revocation)) {}
  ~GuardedWatch() override { OnReady(nullptr); }

  absl::StatusOr<std::vector<WatchedEvent>> Next() override {
    if (absl::Status status = revocation_->Check(); !status.ok()) return status;
    return watch_->Next();
  }
  std::optional<std::vector<WatchedEvent>> NextLive() override {
    if (revocation_->revoked()) return std::nullopt;  // Next says why
    return watch_->NextLive();
  }
  bool more() const override { return watch_->more(); }
  bool finished() const override { return watch_->finished(); }
  void OnReady(std::function<void()> wake) override {
    if (subscription_ != 0) revocation_->Unsubscribe(std::exchange(subscription_, 0));
    if (wake) subscription_ = revocation_->Subscribe(wake);
    watch_->OnReady(std::move(wake));
  }

 private:
  const std::unique_ptr<Watch> watch_;
  const std::shared_ptr<Revocation> revocation_;
  int64_t subscription_ = 0;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_GUARDED_WATCH_H_
