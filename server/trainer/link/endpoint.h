// Where the server is, as it wrote itself down in endpoint.json.
#ifndef NORMLAB_SERVER_TRAINER_LINK_ENDPOINT_H_
#define NORMLAB_SERVER_TRAINER_LINK_ENDPOINT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace normlab::trainer {

// gRPC targets to try in this order: the unix socket, then the TCP address. NOT_FOUND when no
// server has written the file; a server that stops removes it and the next one writes its own.
absl::StatusOr<std::vector<std::string>> ReadTargets(const std::filesystem::path& endpoint_file);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_ENDPOINT_H_
