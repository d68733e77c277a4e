#include "server/executor/trainer_capabilities.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "server/base/strings.h"
#include "server/base/subprocess.h"

namespace normlab::executor {
namespace {

using std::chrono::steady_clock;

constexpr size_t kLongestAnswer = 4096;

// The caller's environment, in which no GPU is woken up.
std::vector<std::string> Environment() {
  constexpr std::string_view kGpus = "CUDA_VISIBLE_DEVICES=";
  std::vector<std::string> environment = {std::string(kGpus)};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with(kGpus) && !text.starts_with("NORMLAB_TOKEN=")) {
      environment.emplace_back(text);
    }
  }
  return environment;
}

// Until its end, or `until`.
absl::StatusOr<std::string> ReadAnswer(int fd, steady_clock::time_point until) {
  std::string answer;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    const int found = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
    if (found == 0) return absl::DeadlineExceededError("it did not answer in time");
    if (found < 0 && errno == EINTR)
      continue;  // what is not there yet is not waited for by reading
    char buffer[512];
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "its answer could not be read");
    if (count == 0) return answer;
    answer.append(buffer, static_cast<size_t>(count));
    if (answer.size() > kLongestAnswer) return absl::InvalidArgumentError("its answer has no end");
  }
}

}  // namespace

absl::StatusOr<TrainerCapabilities> AskTrainer(const std::filesystem::path& trainer,
                                               std::chrono::milliseconds timeout) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "no pipe");
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const absl::StatusOr<pid_t> pid = Spawn({.argv = {trainer.string(), "--capabilities"},
                                           .environment = Environment(),
                                           .stdout_fd = to.get()});
  if (!pid.ok()) return pid.status();
  to = UniqueFd();
  const absl::StatusOr<std::string> answer = ReadAnswer(from.get(), steady_clock::now() + timeout);
  kill(*pid, SIGKILL);  // nobody has waited for it, so the number is its own; it has said it all
  waitpid(*pid, nullptr, 0);
  if (!answer.ok()) return answer.status();
  try {
    return TrainerCapabilities{.gpus = nlohmann::json::parse(*answer).at("gpus").get<int64_t>()};
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError(
        StrCat("it does not say what it can do: ", answer->substr(0, 200)));
  }
}

}  // namespace normlab::executor
