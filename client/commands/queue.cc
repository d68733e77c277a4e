// normlab queue: the runs that wait, in the order in which they are expected to start.
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "client/commands/commands.h"
#include "client/run_ref.h"
#include "client/term/table.h"

namespace normlab::client {
namespace {

using normlab::v1::DeviceService;
using normlab::v1::Queue;
using normlab::v1::QueueEntry;
using normlab::v1::Run;
using normlab::v1::UserUsage;

struct Options {
  int limit = 100;
};

// "gpu, 2 GPUs, 12 GiB each, exclusive" or "cpu, 4 threads".
std::string AsksFor(const QueueEntry& entry) {
  std::string text = Clean(entry.device());
  const normlab::v1::Resources& resources = entry.resources();
  if (entry.threads() > 1) text += fmt::format(", {} threads", entry.threads());
  if (resources.gpus() > 1) text += fmt::format(", {} GPUs", resources.gpus());
  if (resources.gpu_memory_bytes() > 0) text += ", " + BytesText(resources.gpu_memory_bytes());
  if (resources.exclusive()) text += ", exclusive";
  return text;
}

std::string StartsIn(const QueueEntry& entry, int64_t now_micros) {
  if (!entry.has_estimated_start_time()) return "";
  const int64_t micros =
      google::protobuf::util::TimeUtil::TimestampToMicroseconds(entry.estimated_start_time()) -
      now_micros;
  return DurationText(static_cast<double>(std::max<int64_t>(0, micros)) / 1e6);
}

Table EntryTable(const Queue& queue) {
  const int64_t now = std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  std::vector<Run> runs;
  for (const QueueEntry& entry : queue.entries()) runs.emplace_back().set_id(entry.run());
  const std::vector<std::string> ids = ShortIds(runs);
  Table table({{"place", Align::kRight},
               {"id"},
               {"run", Align::kLeft, /*shrinks=*/true},
               {"user"},
               {"class"},
               {"asks for"},
               {"waits for", Align::kLeft, /*shrinks=*/true},
               {"starts in about", Align::kRight}});
  for (int i = 0; i < queue.entries_size(); ++i) {
    const QueueEntry& entry = queue.entries(i);
    table.Add({{entry.position() > 0 ? fmt::format("{}", entry.position()) : "-"},
               {ids[i]},
               {Clean(entry.display_name())},
               {Clean(entry.user())},
               {Clean(entry.priority())},
               {AsksFor(entry)},
               {Clean(entry.wait_reason())},
               {StartsIn(entry, now)}});
  }
  return table;
}

Table UserTable(const Queue& queue) {
  Table table({{"user"},
               {"runs", Align::kRight},
               {"waiting", Align::kRight},
               {"GPU memory", Align::kRight},
               {"used lately", Align::kRight}});
  for (const UserUsage& usage : queue.users()) {
    table.Add({{Clean(usage.user())},
               {fmt::format("{}", usage.running())},
               {fmt::format("{}", usage.queued())},
               {usage.gpu_memory_bytes() > 0 ? BytesText(usage.gpu_memory_bytes()) : "-"},
               {DurationText(usage.decayed_device_seconds())}});
  }
  return table;
}

int ShowQueue(Context& context, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  normlab::v1::GetQueueRequest request;
  request.set_page_size(options.limit);
  const auto queue = (*client)->Call((*client)->devices(), &DeviceService::Stub::GetQueue, request);
  if (!queue.ok()) return context.Fail(queue.status());
  if (context.json) {
    context.PrintJson(*queue);
    return kExitOk;
  }
  if (queue->entries().empty()) {
    if (context.terminal.smart()) context.terminal.Print("Nothing waits.");
  } else {
    EntryTable(*queue).PrintTo(context.terminal);
  }
  if (queue->total_size() > queue->entries_size()) {
    context.terminal.Print(fmt::format(
        "and {} more (-n {})", queue->total_size() - queue->entries_size(), queue->total_size()));
  }
  if (!queue->users().empty()) {
    context.terminal.Print("");
    UserTable(*queue).PrintTo(context.terminal);
  }
  return kExitOk;
}

}  // namespace

void AddQueue(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "queue", "List the runs that wait: for what, how long, and what users have used");
  command->add_option("-n,--limit", options->limit, "At most this many runs")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->footer(
      "Runs go by class (high, normal, low), then those of the user first who has used least.\n"
      "A day ago counts half.\n\n"
      "Examples:\n  normlab queue\n  normlab queue -n 1000\n  normlab queue --json");
  command->callback([&context, options] { context.exit_code = ShowQueue(context, *options); });
}

}  // namespace normlab::client
