// normlab-trainer: one attempt of one run. Started by normlab-shepherd, not by people.
#include <cstdio>

#include "server/base/log.h"
#include "server/trainer/link/attempt.h"

int main(int argc, char** argv) {
  normlab::StartLogging("info");
  const auto arguments = normlab::trainer::ParseArguments(argc, argv);
  if (!arguments.ok()) {
    std::fprintf(stderr, "normlab-trainer: %s\n", arguments.status().ToString().c_str());
    return normlab::trainer::kExitUsage;
  }
  return normlab::trainer::RunAttempt(*arguments);
}
