#include "server/executor/attempt_start.h"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "server/base/orders.h"
#include "server/base/strings.h"
#include "server/executor/process_owner.h"
#include "server/executor/shepherd_warm.h"

namespace normlab::executor {
namespace {

constexpr size_t kRoomForArguments = 1024;  // ps shows it

std::vector<std::string> Environment(const std::string& threads, const std::string& gpu_uuid,
                                     const std::string& directory) {
  return {
      "OMP_NUM_THREADS=" + threads,
      "MKL_NUM_THREADS=" + threads,
      "OPENBLAS_NUM_THREADS=" + threads,
      "OMP_WAIT_POLICY=PASSIVE",
      "OMP_DYNAMIC=FALSE",
      "MKL_DYNAMIC=FALSE",
      "CUDA_VISIBLE_DEVICES=" + gpu_uuid,
      StrCat(kAttemptVariable, "=", directory),
  };
}

// As server/base/orders.h describes it.
std::string OrdersText(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment) {
  std::string text;
  for (const std::string& word : arguments) text.append(word).push_back('\0');
  text.push_back('\0');
  for (const std::string& word : environment) text.append(word).push_back('\0');
  return text;
}

absl::Status SendOrders(const UniqueFd& line, const std::string& text) {
  if (text.size() > kOrdersBytes) return absl::InvalidArgumentError("too long to be told");
  if (send(line.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    return absl::ErrnoToStatus(errno, "it cannot be told");
  }
  return absl::OkStatus();
}

absl::Status HearPrepared(const UniqueFd& line, std::chrono::milliseconds patience) {
  pollfd entry = {.fd = line.get(), .events = POLLIN, .revents = 0};
  if (poll(&entry, 1, static_cast<int>(patience.count())) != 1) {
    return absl::DeadlineExceededError("it does not answer");
  }
  char said = 0;
  if (recv(line.get(), &said, 1, MSG_DONTWAIT) != 1 || said != kSayPrepared) {
    return absl::UnavailableError("it ended");
  }
  return absl::OkStatus();
}

// With the lock, which the shepherd must have before it begins.
absl::Status SayBegin(const UniqueFd& line, const UniqueFd& lock) {
  char word = kSayBegin;
  iovec data = {.iov_base = &word, .iov_len = 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof(room);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = lock.get();
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  if (sendmsg(line.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
    return absl::ErrnoToStatus(errno, "it cannot be told to begin");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ShepherdArguments(const LocalExecutorOptions& options,
                                           const LaunchRequest& request) {
  const std::string directory = request.directory.string();
  return {options.shepherd_path.string(),
          "--dir",
          directory,
          "--grace-ms",
          std::to_string(options.default_grace.count()),
          "--log-bytes",
          std::to_string(options.log_bytes),
          "--",
          std::filesystem::absolute(options.trainer_path).string(),
          "--run",
          request.key.run,
          "--attempt",
          std::to_string(request.key.attempt),
          "--dir",
          directory,
          "--endpoint-file",
          request.endpoint_file.string(),
          "--device",
          request.device,
          "--threads",
          std::to_string(request.threads)};
}

std::vector<std::string> WarmArguments(const LocalExecutorOptions& options) {
  return {options.shepherd_path.string(),
          "--warm",
          "--",
          std::filesystem::absolute(options.trainer_path).string(),
          "--warm",
          std::string(kRoomForArguments, ' ')};
}

std::vector<std::string> AttemptEnvironment(const LaunchRequest& request) {
  return Environment(std::to_string(request.threads), request.gpu_uuid, request.directory.string());
}

std::vector<std::string> WarmEnvironment() {
  std::string directory = StrCat("warm:", getpid());
  directory.resize(PATH_MAX, ' ');
  return Environment("1", "", directory);
}

std::vector<std::string> WithServerEnvironment(std::vector<std::string> own) {
  const size_t count = own.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    const bool replaced =
        std::any_of(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(count),
                    [&](const std::string& mine) { return mine.starts_with(name); });
    if (!replaced && name != "NORMLAB_TOKEN=") own.push_back(text);
  }
  return own;
}

absl::Status HandOver(const UniqueFd& line, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment, const UniqueFd& lock,
                      std::chrono::milliseconds patience) {
  absl::Status status = SendOrders(line, OrdersText(arguments, environment));
  if (status.ok()) status = HearPrepared(line, patience);
  if (status.ok()) status = SayBegin(line, lock);
  return status;
}

}  // namespace normlab::executor
