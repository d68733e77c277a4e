#include "client/ask.h"

#include <unistd.h>

#include <iostream>

namespace normlab::client {

absl::StatusOr<bool> Ask(Context& context, const std::string& question) {
  if (isatty(STDIN_FILENO) == 0) {
    return absl::FailedPreconditionError(question + " Nobody can be asked here; add --yes");
  }
  context.terminal.Write(question + " [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace normlab::client
