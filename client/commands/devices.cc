// normlab devices: where runs can train, and which runs do.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "client/commands/commands.h"
#include "client/term/table.h"

namespace normlab::client {
namespace {

using normlab::v1::Device;
using normlab::v1::DeviceService;

struct Options {
  std::string drain;
  std::string reason;
  std::string enable;
};

// What the device offers: threads of a CPU slot, memory of a GPU.
std::string SizeText(const Device& device) {
  if (device.kind() == Device::KIND_GPU && device.memory_bytes() == 0) return "unknown";
  if (device.kind() == Device::KIND_GPU) {
    return fmt::format("{} of {} used", BytesText(device.memory_used_bytes()),
                       BytesText(device.memory_bytes()));
  }
  return fmt::format("{} thread{}", device.threads(), device.threads() == 1 ? "" : "s");
}

std::string BusyText(const Device& device) {
  return device.has_utilization() ? fmt::format("{:.0f} %", 100 * device.utilization()) : "";
}

std::string UseText(const Device& device) {
  std::string text;
  for (const normlab::v1::Lease& lease : device.leases()) {
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", lease.display_name(), lease.user(),
                        lease.memory_bytes() > 0 ? ", " + BytesText(lease.memory_bytes()) : "");
  }
  if (device.foreign_memory_bytes() > 0 && device.unavailable_reason().empty()) {
    text += fmt::format("{}{} by others", text.empty() ? "" : ", ",
                        BytesText(device.foreign_memory_bytes()));
  }
  if (!device.unavailable_reason().empty()) {
    return fmt::format("{}not used: {}", text.empty() ? "" : text + "; ",
                       device.unavailable_reason());
  }
  return text.empty() ? "free" : text;
}

void Print(Context& context, const google::protobuf::RepeatedPtrField<Device>& devices) {
  if (context.json) {
    for (const Device& device : devices) context.PrintJson(device);
    return;
  }
  Table table({{"device"},
               {"name", Align::kLeft, /*shrinks=*/true},
               {"size"},
               {"busy", Align::kRight, /*shrinks=*/false, /*optional=*/true},
               {"use", Align::kLeft, /*shrinks=*/true}});
  for (const Device& device : devices) {
    table.Add({{Clean(device.id())},
               {Clean(device.name())},
               {SizeText(device)},
               {BusyText(device)},
               {Clean(UseText(device))}});
  }
  table.PrintTo(context.terminal);
}

int Devices(Context& context, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  DeviceService::Stub& service = (*client)->devices();
  if (!options.drain.empty() || !options.enable.empty()) {
    normlab::v1::UpdateDeviceRequest request;
    request.set_id(options.drain.empty() ? options.enable : options.drain);
    if (!options.drain.empty()) request.set_drain_reason(options.reason);
    const auto device = (*client)->Call(service, &DeviceService::Stub::UpdateDevice, request);
    if (!device.ok()) return context.Fail(device.status());
    google::protobuf::RepeatedPtrField<Device> devices;
    *devices.Add() = *device;
    Print(context, devices);
    return kExitOk;
  }
  const auto answer = (*client)->Call(service, &DeviceService::Stub::ListDevices,
                                      normlab::v1::ListDevicesRequest());
  if (!answer.ok()) return context.Fail(answer.status());
  Print(context, answer->devices());
  return kExitOk;
}

}  // namespace

void AddDevices(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("devices", "List devices and the runs on them");
  CLI::Option* drain =
      command->add_option("--drain", options->drain, "Give this device no more runs; for admins")
          ->type_name("DEVICE");
  command->add_option("--reason", options->reason, "Why, for everybody to read")
      ->needs(drain)
      ->default_str("taken out of use");
  options->reason = "taken out of use";
  command
      ->add_option("--enable", options->enable,
                   "Put this device back, also out of quarantine; for admins")
      ->type_name("DEVICE")
      ->excludes(drain);
  command->footer(
      "Examples:\n  normlab devices\n  normlab devices --json\n"
      "  normlab devices --drain gpu:1 --reason 'fan is broken'\n"
      "  normlab devices --enable gpu:1\n"
      "\nRuns that train on a drained device go on. It stays drained over restarts.");
  command->callback([&context, options] { context.exit_code = Devices(context, *options); });
}

}  // namespace normlab::client
