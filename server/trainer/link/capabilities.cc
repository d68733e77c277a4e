#include "server/trainer/link/capabilities.h"

#include <nlohmann/json.hpp>

#include "server/trainer/trainer.h"

namespace normlab::trainer {

std::string CapabilitiesText() {
  const nlohmann::json capabilities = {{"engine", std::string(EngineVersion())},
                                       {"gpus", GpusOfARun()},
                                       {"version", NORMLAB_VERSION}};
  return capabilities.dump();
}

}  // namespace normlab::trainer
