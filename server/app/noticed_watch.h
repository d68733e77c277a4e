// A watch that also tells what is wrong with the server.
#ifndef NORMLAB_SERVER_APP_NOTICED_WATCH_H_
#define NORMLAB_SERVER_APP_NOTICED_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/app/api.h"
#include "server/app/problems.h"

namespace normlab::app {

// Notices are about now: they have no sequence, are not stored, and bear no resume token.
class NoticedWatch : public Watch {
 public:
  NoticedWatch(std::unique_ptr<Watch> watch, Problems& problems)
      : watch_(std::move(watch)), problems_(problems) {}
  ~NoticedWatch() override { OnReady(nullptr); }

  absl::StatusOr<std::vector<WatchedEvent>> Next() override;
  std::optional<std::vector<WatchedEvent>> NextLive() override;
  bool more() const override { return news_only_ || watch_->more(); }
  bool finished() const override { return watch_->finished(); }
  void OnReady(std::function<void()> wake) override;

 private:
  std::optional<WatchedEvent> News();

  const std::unique_ptr<Watch> watch_;
  Problems& problems_;
  int64_t told_ = 0;        // version of the problems
  bool news_only_ = false;  // the latest answer did not come from the watch, which may have more
  int64_t subscription_ = 0;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_NOTICED_WATCH_H_
