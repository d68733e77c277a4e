#include "server/executor/warm_trainers.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/executor/shepherd_warm.h"

namespace normlab::executor {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kEnding(5);

int MillisecondsUntil(std::chrono::steady_clock::time_point time) {
  const auto left = time - std::chrono::steady_clock::now();
  // One more: poll's are whole, and waking just before the time would be for nothing.
  const auto count = std::chrono::duration_cast<milliseconds>(left).count() + 1;
  return static_cast<int>(std::clamp<int64_t>(count, 0, 3600 * 1000));
}

// Its line is closed: it ends by itself unless something is wrong with it.
void WaitForEnd(const WarmTrainer& trainer, std::chrono::steady_clock::time_point until) {
  pollfd entry = {.fd = trainer.process.get(), .events = POLLIN, .revents = 0};
  if (poll(&entry, 1, MillisecondsUntil(until)) != 1) {
    LogWarning("a warm trainer is killed, since it does not end",
               {{"shepherd", StrCat(trainer.shepherd.pid)}});
    SignalProcess(trainer.process, SIGKILL).IgnoreError();  // it is gone, then
  }
  ReapChild(trainer.process, Reap::kWait);
}

}  // namespace

WarmTrainers::WarmTrainers(WarmTrainersOptions options)
    : options_(std::move(options)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      not_before_(Clock::now() + options_.quiet) {
  thread_ = std::thread([this] { Loop(); });
}

WarmTrainers::~WarmTrainers() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

std::optional<WarmTrainer> WarmTrainers::Take() {
  const std::string now = Fingerprint();
  std::optional<WarmTrainer> taken;
  MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!entry->loaded || entry->fingerprint != now) continue;
    taken = std::move(entry->trainer);
    entries_.erase(entry);
    pause_ = {};
    break;
  }
  return taken;
}

void WarmTrainers::Discard(WarmTrainer trainer) {
  trainer.line = UniqueFd();
  SignalProcess(trainer.process, SIGKILL).IgnoreError();  // if it cannot be, it is gone
  MutexLock lock(mutex_);
  ending_.push_back(std::move(trainer));
  eventfd_write(wake_.get(), 1);
}

void WarmTrainers::Defer() {
  MutexLock lock(mutex_);
  not_before_ = std::max(not_before_, Clock::now() + options_.quiet);
  eventfd_write(wake_.get(), 1);
}

int WarmTrainers::Loaded() {
  MutexLock lock(mutex_);
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(),
                                        [](const Entry& entry) { return entry.loaded; }));
}

void WarmTrainers::Loop() {
  while (!Stopping()) {
    DropStale();
    if (WantsMore()) StartOne();
    Listen(NextTurn());
    HearEach();
    WaitForEnded();
  }
  EndAll();
}

// On the thread that started them, whose own end would kill them before they have tidied up.
void WarmTrainers::EndAll() {
  MutexLock lock(mutex_);
  while (!entries_.empty()) LetGo(entries_.begin());
  const auto until = Clock::now() + kEnding;
  for (const WarmTrainer& trainer : ending_) WaitForEnd(trainer, until);
}

bool WarmTrainers::Stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

WarmTrainers::Clock::time_point WarmTrainers::NextTurn() {
  MutexLock lock(mutex_);
  Clock::time_point next = Clock::now() + options_.look_at_programs;
  if (entries_.size() < static_cast<size_t>(options_.count)) next = std::min(next, not_before_);
  for (const Entry& entry : entries_) {
    if (!entry.loaded) next = std::min(next, entry.started + options_.loading);
  }
  return next;
}

void WarmTrainers::Listen(Clock::time_point until) {
  std::vector<pollfd> fds = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  {
    MutexLock lock(mutex_);
    for (const Entry& entry : entries_) {
      fds.push_back({.fd = entry.trainer.line.get(), .events = POLLIN, .revents = 0});
    }
    for (const WarmTrainer& trainer : ending_) {
      fds.push_back({.fd = trainer.process.get(), .events = POLLIN, .revents = 0});
    }
  }
  poll(fds.data(), fds.size(), MillisecondsUntil(until));
  eventfd_t ignored;
  eventfd_read(wake_.get(), &ignored);
}

void WarmTrainers::HearEach() {
  MutexLock lock(mutex_);
  for (size_t i = entries_.size(); i-- > 0;) {
    if (!Hear(entries_[i])) LetGo(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool WarmTrainers::Hear(Entry& entry) {
  char said = 0;
  const ssize_t length = recv(entry.trainer.line.get(), &said, 1, MSG_DONTWAIT);
  if (length == 1 && said == kSayLoaded) {
    entry.loaded = true;
    LogInfo("a trainer is kept warm", {{"shepherd", StrCat(entry.trainer.shepherd.pid)}});
    return true;
  }
  if (length < 0 && errno == EAGAIN) {
    if (entry.loaded || Clock::now() - entry.started < options_.loading) return true;
    NoteFailure("it does not say that it is loaded; does the program know --warm?");
    return false;
  }
  NoteFailure(entry.loaded ? "it was ended" : "it ended before it was loaded");
  return false;
}

void WarmTrainers::LetGo(std::vector<Entry>::iterator entry) {
  entry->trainer.line = UniqueFd();
  ending_.push_back(std::move(entry->trainer));
  entries_.erase(entry);
}

void WarmTrainers::NoteFailure(const std::string& why) {
  LogWarning("a trainer could not be kept warm", {{"why", why}});
  pause_ =
      pause_.count() == 0 ? options_.first_pause : std::min(2 * pause_, options_.longest_pause);
  not_before_ = std::max(not_before_, Clock::now() + pause_);
}

void WarmTrainers::DropStale() {
  const std::string now = Fingerprint();
  MutexLock lock(mutex_);
  for (size_t i = entries_.size(); i-- > 0;) {
    if (entries_[i].fingerprint != now) LetGo(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool WarmTrainers::WantsMore() {
  MutexLock lock(mutex_);
  return entries_.size() < static_cast<size_t>(options_.count) && Clock::now() >= not_before_;
}

void WarmTrainers::StartOne() {
  Entry entry;
  entry.fingerprint = Fingerprint();
  entry.started = Clock::now();
  absl::StatusOr<WarmTrainer> trainer = Spawn();
  MutexLock lock(mutex_);
  if (!trainer.ok()) {
    NoteFailure(trainer.status().ToString());
    return;
  }
  entry.trainer = *std::move(trainer);
  entries_.push_back(std::move(entry));
}

absl::StatusOr<WarmTrainer> WarmTrainers::Spawn() const {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::ErrnoToStatus(errno, "no line to a shepherd");
  }
  WarmTrainer trainer = {.shepherd = {}, .process = {}, .line = UniqueFd(ends[0])};
  const UniqueFd theirs(ends[1]);
  const absl::StatusOr<pid_t> pid = normlab::Spawn({
      .argv = options_.arguments,
      .environment = options_.environment(),
      .directory = "/",
      .stderr_fd = STDERR_FILENO,  // why it cannot be loaded; an attempt's log takes its place
      .inherited_fd = theirs.get(),
      .block_signals = true,
  });
  if (!pid.ok()) return pid.status();
  // It cannot be anybody else's number: nobody has waited for this child.
  absl::StatusOr<ProcessIdentity> identity = ReadIdentity(*pid);
  absl::StatusOr<UniqueFd> process =
      identity.ok() ? OpenProcess(*identity) : absl::StatusOr<UniqueFd>(identity.status());
  if (!process.ok()) {
    kill(*pid, SIGKILL);
    waitpid(*pid, nullptr, 0);
    return process.status();
  }
  trainer.shepherd = *std::move(identity);
  trainer.process = *std::move(process);
  return trainer;
}

std::string WarmTrainers::Fingerprint() const {
  std::string text;
  for (const std::filesystem::path& program : options_.programs) {
    struct stat info = {};
    stat(program.c_str(), &info);  // one that is missing has zeros
    StrAppend(&text, info.st_dev, " ", info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec,
              ".", info.st_mtim.tv_nsec, "\n");
  }
  return text;
}

void WarmTrainers::WaitForEnded() {
  MutexLock lock(mutex_);
  std::erase_if(ending_, [](const WarmTrainer& trainer) {
    if (!HasEnded(trainer.process)) return false;
    ReapChild(trainer.process, Reap::kWait);
    return true;
  });
}

}  // namespace normlab::executor
