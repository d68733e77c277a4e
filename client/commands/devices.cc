// normlab devices: where runs can train, and which runs do.
#include <fmt/format.h>

#include "client/commands/commands.h"
#include "client/term/table.h"

namespace normlab::client {
namespace {

using normlab::v1::Device;
using normlab::v1::DeviceService;

// What the device offers: threads of a CPU slot, memory of a GPU.
std::string SizeText(const Device& device) {
  if (device.kind() == Device::KIND_GPU) return BytesText(device.memory_bytes());
  return fmt::format("{} thread{}", device.threads(), device.threads() == 1 ? "" : "s");
}

std::string UseText(const Device& device) {
  if (!device.unavailable_reason().empty()) return "not used: " + device.unavailable_reason();
  return device.run().empty() ? "free" : "run " + device.run();
}

int Devices(Context& context) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const auto answer = (*client)->Call((*client)->devices(), &DeviceService::Stub::ListDevices,
                                      normlab::v1::ListDevicesRequest());
  if (!answer.ok()) return context.Fail(answer.status());
  if (context.json) {
    for (const Device& device : answer->devices()) context.PrintJson(device);
    return kExitOk;
  }
  Table table({{"device"}, {"name", Align::kLeft, /*shrinks=*/true}, {"size"}, {"use"}});
  for (const Device& device : answer->devices()) {
    table.Add({{Clean(device.id())},
               {Clean(device.name())},
               {SizeText(device)},
               {Clean(UseText(device))}});
  }
  table.PrintTo(context.terminal);
  return kExitOk;
}

}  // namespace

void AddDevices(CLI::App& program, Context& context) {
  CLI::App* command = program.add_subcommand("devices", "List devices and the runs on them");
  command->footer("Examples:\n  normlab devices\n  normlab devices --json");
  command->callback([&context] { context.exit_code = Devices(context); });
}

}  // namespace normlab::client
