#include "server/trainer/link/warm_start.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "server/base/orders.h"
#include "server/base/strings.h"

namespace normlab::trainer {
namespace {

constexpr int kLine = 3;  // to the shepherd: see server/executor/shepherd_warm.h
constexpr char kLoaded = 'l';

absl::Status Receive(Orders* orders) {
  if (send(kLine, &kLoaded, 1, MSG_NOSIGNAL) != 1) {
    return absl::ErrnoToStatus(errno, "--warm is for shepherds: there is none at descriptor 3");
  }
  ssize_t length;
  do {
    length = recv(kLine, orders->text, sizeof(orders->text), MSG_TRUNC);
  } while (length < 0 && errno == EINTR);
  close(kLine);
  if (length == 0) return absl::CancelledError("no attempt came");
  orders->length = static_cast<size_t>(length);
  if (length < 0 || orders->length > sizeof(orders->text) || ParseOrders(orders) != 0) {
    return absl::InvalidArgumentError("what the shepherd said cannot be understood");
  }
  return absl::OkStatus();
}

absl::Status EnterFolder(const std::filesystem::path& directory) {
  const std::filesystem::path log = directory / "log";
  if (chdir(directory.c_str()) != 0) return absl::ErrnoToStatus(errno, directory.string());
  const int file = open(log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return absl::ErrnoToStatus(errno, log.string());
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  close(file);
  return absl::OkStatus();
}

}  // namespace

bool IsWarmStart(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]) == "--warm";
}

absl::StatusOr<AttemptArguments> WaitForAttempt(int argc, char** argv) {
  const auto orders = std::make_unique<Orders>();
  if (absl::Status status = Receive(orders.get()); !status.ok()) return status;
  absl::StatusOr<AttemptArguments> arguments = ParseArguments(orders->argc, orders->argv);
  if (!arguments.ok()) return arguments;
  if (absl::Status status = EnterFolder(arguments->directory); !status.ok()) return status;
  if (TakeEnvironment(orders.get(), "NORMLAB_ATTEMPT_DIR") != 0) {
    return absl::InternalError("the environment of the attempt does not fit");
  }
  ShowArguments(orders.get(), argc, argv);
  return arguments;
}

}  // namespace normlab::trainer
