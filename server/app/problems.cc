#include "server/app/problems.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "server/app/noticed_watch.h"
#include "server/base/log.h"
#include "server/base/strings.h"

namespace normlab::app {
namespace {

constexpr uint64_t kLittle = uint64_t{1} << 30;      // bytes free, on a large disk
constexpr uint64_t kTooLittle = uint64_t{16} << 20;  // no run starts below

std::string Mebibytes(uint64_t bytes) { return StrCat(bytes >> 20, " MiB"); }

std::string Duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole < 120) return StrCat(whole, " s");
  return whole < 7200 ? StrCat(whole / 60, " min") : StrCat(whole / 3600, " h");
}

std::string ReaderName(const storage::LogReader& reader) {
  return reader.command.empty() ? StrCat("process ", reader.pid)
                                : StrCat("process ", reader.pid, " (", reader.command, ")");
}

}  // namespace

Problems::Problems(storage::Store& store, Options options)
    : store_(store), options_(std::move(options)) {
  Look();
  thread_ = std::thread([this] { Loop(); });
}

Problems::~Problems() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  thread_.join();
}

void Problems::Loop() {
  while (true) {
    {
      MutexLock lock(mutex_);
      if (!stopping_) stop_.WaitFor(mutex_, options_.period);
      if (stopping_) return;
    }
    Look();
  }
}

void Problems::Look() {
  std::vector<Problem> found = Find();
  MutexLock lock(mutex_);
  const bool same = std::equal(found.begin(), found.end(), current_.begin(), current_.end(),
                               [](const Problem& a, const Problem& b) { return a.key == b.key; });
  current_ = std::move(found);
  if (same) return;
  ++version_;
  for (const Problem& problem : current_) LogWarning("a problem", {{"what", problem.text}});
  if (current_.empty()) LogInfo("no more problems");
  for (const auto& [id, bell] : bells_) bell();
}

std::vector<Problems::Problem> Problems::Find() {
  std::vector<Problem> found;
  FindWriting(found);
  FindDisk(found);
  FindLog(found);
  return found;
}

void Problems::FindWriting(std::vector<Problem>& found) {
  const absl::Status health = store_.writer().health();
  if (health.ok()) return;
  const bool full = absl::IsResourceExhausted(health);
  found.push_back(
      {"writing", StrCat("nothing can be stored (", std::string(health.message()),
                         "); runs keep their points in their spools and go on by themselves: ",
                         full ? "make room on the disk of the data folder"
                              : "look at the disk of the data folder")});
  // It is well when a write has worked, and perhaps nobody else tries.
  store_.writer().Submit([](storage::WriteContext&) { return absl::OkStatus(); }, nullptr);
}

void Problems::FindDisk(std::vector<Problem>& found) const {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(options_.data_dir, error);
  if (error) return;
  const uint64_t enough = std::max(kTooLittle, std::min(kLittle, space.capacity / 20));
  if (space.available >= enough) return;
  found.push_back({"disk", StrCat("the disk of the data folder is nearly full, ",
                                  Mebibytes(space.available), " are free: make room; runs ",
                                  space.available < kTooLittle ? "wait" : "will wait",
                                  " until there is some")});
}

void Problems::FindLog(std::vector<Problem>& found) {
  const storage::LogState log = store_.log_state();
  if (!log.error.ok()) {
    found.push_back({"checkpoint", StrCat("the write-ahead log cannot be moved into the database (",
                                          std::string(log.error.message()),
                                          ") and grows: look at the disk of the data folder")});
  }
  const std::string waiting =
      log.holding ? "; points wait in the spools of their runs until it is short again" : "";
  const std::string size =
      StrCat("the write-ahead log has grown to ", Mebibytes(static_cast<uint64_t>(log.bytes)));
  const std::vector<std::string> own = store_.SlowReaders();
  if (!log.pinned || !log.readers.empty() || !own.empty()) explained_at_ = log.attempts;
  if (!log.pinned && !log.holding) return;
  for (const storage::LogState::Reader& reader : log.readers) {
    found.push_back({StrCat("reader ", reader.who.pid, log.holding ? " holding" : ""),
                     StrCat(ReaderName(reader.who), " has been reading the database for ",
                            Duration(reader.seconds), ", and ", size,
                            ": end that program or its transaction", waiting)});
  }
  if (!log.readers.empty()) return;
  if (!own.empty()) {
    found.push_back({StrCat("own reader ", own.front()),
                     StrCat("a read of this server (", own.front(), ") takes long, and ", size,
                            "; it ends by itself", waiting)});
  } else if (log.error.ok() && log.attempts > explained_at_ + 1) {
    // What was in the way a moment ago had gone before the latest attempt.
    found.push_back({StrCat("unknown reader", log.holding ? " holding" : ""),
                     StrCat(size,
                            ", because something that cannot be seen from here (in another "
                            "container?) reads the database: find and end it",
                            waiting)});
  }
}

std::vector<std::string> Problems::Current() const {
  MutexLock lock(mutex_);
  std::vector<std::string> texts;
  for (const Problem& problem : current_) texts.push_back(problem.text);
  return texts;
}

int64_t Problems::Subscribe(std::function<void()> bell) {
  MutexLock lock(mutex_);
  bells_[next_bell_] = std::move(bell);
  return next_bell_++;
}

void Problems::Unsubscribe(int64_t subscription) {
  MutexLock lock(mutex_);
  bells_.erase(subscription);
}

std::unique_ptr<Watch> Problems::Tell(std::unique_ptr<Watch> watch) {
  return std::make_unique<NoticedWatch>(std::move(watch), *this);
}

}  // namespace normlab::app
