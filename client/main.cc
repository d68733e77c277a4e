#include <cstdlib>
#include <string>
#include <vector>

#include "client/program.h"
#include "client/term/terminal.h"

int main(int argc, char** argv) {
  // gRPC's own log lines (a connection refused) are not for our users: every call says what failed.
  ::setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);
  normlab::client::Terminal terminal(normlab::client::Terminal::StandardTraits());
  return normlab::client::RunProgram(std::vector<std::string>(argv + 1, argv + argc), terminal);
}
