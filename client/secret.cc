#include "client/secret.h"

#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>
#include <utility>

#include "client/term/text.h"

namespace normlab::client {
namespace {

// What is typed is not shown while this lives.
class EchoOff {
 public:
  EchoOff() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    changed_ = ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) == 0;
  }
  ~EchoOff() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;

  // False: what is typed would be seen.
  bool works() const { return changed_; }

 private:
  termios before_{};
  bool changed_ = false;
};

absl::StatusOr<std::string> Ask(Context& context, const std::string& prompt) {
  if (::isatty(STDIN_FILENO) == 0) {
    return absl::FailedPreconditionError(
        "nobody can be asked for the token here; give it with --token-file FILE, or - for "
        "standard input");
  }
  const EchoOff echo_off;
  if (!echo_off.works()) {
    return absl::FailedPreconditionError("this terminal would show the token; use --token-file");
  }
  context.terminal.Write(prompt);
  std::string line;
  std::getline(std::cin, line);
  context.terminal.Write("\n");
  return line;
}

}  // namespace

absl::StatusOr<std::string> ReadToken(Context& context, const std::string& file,
                                      const std::string& prompt) {
  std::string line;
  if (file.empty()) {
    absl::StatusOr<std::string> typed = Ask(context, prompt);
    if (!typed.ok()) return typed.status();
    line = *std::move(typed);
  } else if (file == "-") {
    std::getline(std::cin, line);
  } else {
    std::ifstream stream(file);
    if (!stream || !std::getline(stream, line)) {
      return absl::FailedPreconditionError(fmt::format("cannot read {}", Clean(file)));
    }
  }
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  line.erase(std::find_if_not(line.rbegin(), line.rend(), is_space).base(), line.end());
  // Anything else could not be a header, and would be shown in an error.
  const bool good = !line.empty() && std::all_of(line.begin(), line.end(), [](unsigned char c) {
    return c > ' ' && c < 0x7F;
  });
  if (!good) return absl::FailedPreconditionError("that is no token");
  return line;
}

absl::StatusOr<TokenSink> TokenSink::Open(const std::string& file, bool print) {
  if (print == !file.empty()) {
    return absl::FailedPreconditionError(
        "say where the token goes, which cannot be shown again: --token-file FILE or "
        "--print-token");
  }
  TokenSink sink;
  if (print) return sink;
  auto opened = PrivateFile::Create(file, /*replace=*/false);
  if (absl::IsAlreadyExists(opened.status())) {
    return absl::AlreadyExistsError(fmt::format(
        "{} is there already, and may hold somebody's token; give another name", Clean(file)));
  }
  if (!opened.ok()) return opened.status();
  sink.file_ = *std::move(opened);
  return sink;
}

absl::Status TokenSink::Put(const std::string& token) {
  if (!file_) return absl::OkStatus();
  absl::Status status = file_->Write(token + "\n");
  if (status.ok()) status = file_->Commit();
  if (status.ok()) return status;
  return absl::Status(status.code(), fmt::format("{}\nthe token is lost; make another with: "
                                                 "normlab user rotate",
                                                 std::string(status.message())));
}

}  // namespace normlab::client
