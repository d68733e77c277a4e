// normlab-trainer: one attempt of one run. Started by normlab-shepherd, not by people.
#include <cstdio>
#include <cstring>

#include "server/base/log.h"
#include "server/trainer/link/attempt.h"
#include "server/trainer/link/capabilities.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], normlab::trainer::kCapabilitiesFlag) == 0) {
    std::puts(normlab::trainer::CapabilitiesText().c_str());
    return 0;
  }
  normlab::StartLogging("info");
  const auto arguments = normlab::trainer::ParseArguments(argc, argv);
  if (!arguments.ok()) {
    std::fprintf(stderr, "normlab-trainer: %s\n", arguments.status().ToString().c_str());
    return normlab::trainer::kExitUsage;
  }
  return normlab::trainer::RunAttempt(*arguments);
}
