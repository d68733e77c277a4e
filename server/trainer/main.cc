// normlab-trainer: one attempt of one run. Started by normlab-shepherd, not by people.
#include <cstdio>
#include <cstring>

#include "server/base/log.h"
#include "server/trainer/link/attempt.h"
#include "server/trainer/link/capabilities.h"
#include "server/trainer/link/warm_start.h"

int main(int argc, char** argv) {
  using namespace normlab::trainer;
  if (argc == 2 && std::strcmp(argv[1], kCapabilitiesFlag) == 0) {
    std::puts(CapabilitiesText().c_str());
    return 0;
  }
  normlab::StartLogging("info");
  const auto arguments =
      IsWarmStart(argc, argv) ? WaitForAttempt(argc, argv) : ParseArguments(argc, argv);
  if (absl::IsCancelled(arguments.status())) return kExitEnded;
  if (!arguments.ok()) {
    std::fprintf(stderr, "normlab-trainer: %s\n", arguments.status().ToString().c_str());
    return kExitUsage;
  }
  return RunAttempt(*arguments);
}
