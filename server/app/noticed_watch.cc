#include "server/app/noticed_watch.h"

#include <string>
#include <utility>

namespace normlab::app {

std::optional<WatchedEvent> NoticedWatch::News() {
  const int64_t version = problems_.version();
  if (version == told_) return std::nullopt;
  const bool first = told_ == 0;
  told_ = version;
  v1::WatchRunsResponse message;
  for (std::string& text : problems_.Current()) {
    message.mutable_notice()->add_problems(std::move(text));
  }
  // One who just came need not be told that all is well.
  if (first && message.notice().problems().empty()) return std::nullopt;
  message.mutable_notice();
  return WatchedEvent{std::make_shared<domain::Event>(0, "", std::move(message)), ""};
}

absl::StatusOr<std::vector<WatchedEvent>> NoticedWatch::Next() {
  std::optional<WatchedEvent> news = News();
  news_only_ = news.has_value();
  if (news) return std::vector<WatchedEvent>{*std::move(news)};
  return watch_->Next();
}

std::optional<std::vector<WatchedEvent>> NoticedWatch::NextLive() {
  std::optional<WatchedEvent> news = News();
  news_only_ = news.has_value();
  if (news) return std::vector<WatchedEvent>{*std::move(news)};
  return watch_->NextLive();
}

void NoticedWatch::OnReady(std::function<void()> wake) {
  if (subscription_ != 0) problems_.Unsubscribe(std::exchange(subscription_, 0));
  if (wake) subscription_ = problems_.Subscribe(wake);
  watch_->OnReady(std::move(wake));
}

}  // namespace normlab::app
