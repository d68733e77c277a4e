// Devices, and taking them out of use.
#include <algorithm>
#include <utility>

#include "server/app/requests.h"
#include "server/app/server_api.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/utf8.h"
#include "server/storage/audit.h"
#include "server/storage/drained_devices.h"

namespace normlab::app {
namespace {

constexpr size_t kReasonBytes = 300;

v1::Device DeviceMessage(const scheduler::Device& device) {
  const bool is_cpu = device.kind == scheduler::DeviceKind::kCpu;
  v1::Device message;
  message.set_id(device.id);
  message.set_kind(is_cpu ? v1::Device::KIND_CPU : v1::Device::KIND_GPU);
  message.set_name(device.name);
  message.set_uuid(device.uuid);
  message.set_memory_bytes(device.memory_bytes);
  if (is_cpu) message.set_threads(1);
  if (!device.leases.empty()) message.set_run(device.leases.front().run);
  message.set_unavailable_reason(device.unavailable_reason);
  for (const scheduler::Lease& lease : device.leases) {
    v1::Lease& out = *message.add_leases();
    out.set_run(lease.run);
    out.set_display_name(lease.name);
    out.set_user(lease.user);
    out.set_memory_bytes(lease.memory_bytes);
    out.set_exclusive(lease.exclusive);
  }
  message.set_memory_used_bytes(device.used_bytes);
  message.set_foreign_memory_bytes(device.foreign_bytes);
  if (device.utilization) message.set_utilization(*device.utilization);
  return message;
}

absl::Status CheckReason(const std::string& reason) {
  const char* const wrong = reason.size() > kReasonBytes ? "has more than 300 bytes"
                            : !domain::IsUtf8(reason)    ? "is not UTF-8 text"
                            : domain::FindControl(reason) != std::string_view::npos
                                ? "has a control character (a line break, a tab, ...)"
                                : nullptr;
  return wrong == nullptr ? absl::OkStatus() : domain::InvalidFields({{"drain_reason", wrong}});
}

}  // namespace

absl::StatusOr<v1::ListDevicesResponse> ServerApi::ListDevices(const Principal&) {
  v1::ListDevicesResponse response;
  for (const scheduler::Device& device : parts_.devices.Devices()) {
    *response.add_devices() = DeviceMessage(device);
  }
  return response;
}

absl::StatusOr<v1::Device> ServerApi::UpdateDevice(const Principal& principal,
                                                   const v1::UpdateDeviceRequest& request) {
  if (auto may = MustBeAdmin(principal, "takes devices out of use"); !may.ok()) return may;
  if (absl::Status status = CheckReason(request.drain_reason()); !status.ok()) return status;
  const auto find = [&]() -> absl::StatusOr<v1::Device> {
    for (const scheduler::Device& device : parts_.devices.Devices()) {
      if (device.id == request.id()) return DeviceMessage(device);
    }
    return absl::NotFoundError(StrCat("there is no device ", request.id().substr(0, 64)));
  };
  if (const auto found = find(); !found.ok()) return found;
  const absl::Status status = parts_.store.writer().Write([&](storage::WriteContext& context) {
    const absl::Status written = storage::SetDrained(context, request.id(), request.drain_reason());
    if (!written.ok()) return written;
    return storage::WriteAudit(context, principal.actor(),
                               {.action = request.drain_reason().empty() ? "enable" : "drain",
                                .subject = request.id(),
                                .detail = request.drain_reason()});
  });
  if (!status.ok()) return status;
  parts_.devices.Drain(request.id(), request.drain_reason());
  LogInfo(request.drain_reason().empty() ? "device put back" : "device taken out of use",
          {{"device", request.id()}, {"by", principal.user}, {"why", request.drain_reason()}});
  parts_.dispatcher.Wake();
  return find();
}

}  // namespace normlab::app
