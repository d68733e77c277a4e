#include "server/storage/drained_devices.h"

namespace normlab::storage {

absl::Status SetDrained(WriteContext& context, const std::string& device,
                        const std::string& reason) {
  if (reason.empty()) {
    Statement erase = context.database.Prepared("DELETE FROM drained_devices WHERE device = ?1");
    erase.Bind(1, device);
    return erase.Run();
  }
  Statement insert = context.database.Prepared(
      "INSERT INTO drained_devices (device, reason) VALUES (?1, ?2) "
      "ON CONFLICT (device) DO UPDATE SET reason = excluded.reason");
  insert.Bind(1, device);
  insert.Bind(2, reason);
  return insert.Run();
}

absl::StatusOr<std::map<std::string, std::string>> ReadDrainedDevices(Database& database) {
  Statement select = database.Prepared("SELECT device, reason FROM drained_devices");
  std::map<std::string, std::string> drained;
  while (select.Step()) drained[select.Text(0)] = select.Text(1);
  if (!select.status().ok()) return select.status();
  return drained;
}

}  // namespace normlab::storage
