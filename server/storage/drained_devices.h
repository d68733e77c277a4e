// Devices that an admin took out of use. Functions run inside the caller's transaction.
#ifndef NORMLAB_SERVER_STORAGE_DRAINED_DEVICES_H_
#define NORMLAB_SERVER_STORAGE_DRAINED_DEVICES_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// An empty reason puts the device back.
absl::Status SetDrained(WriteContext& context, const std::string& device,
                        const std::string& reason);

// Reasons by device.
absl::StatusOr<std::map<std::string, std::string>> ReadDrainedDevices(Database& database);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_DRAINED_DEVICES_H_
