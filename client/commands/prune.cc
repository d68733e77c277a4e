// normlab prune: deletes many runs, or their checkpoints, by a rule.
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <charconv>
#include <chrono>
#include <memory>

#include "client/ask.h"
#include "client/commands/commands.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using google::protobuf::util::TimeUtil;
using normlab::v1::PruneRunsRequest;
using normlab::v1::PruneRunsResponse;
using normlab::v1::RunService;

// Deleting ten thousand runs takes a while.
constexpr std::chrono::minutes kPatience(30);

struct Options {
  std::string filter;
  std::string older_than;
  bool checkpoints = false;
  bool dry_run = false;
  bool yes = false;
};

// "90d" in seconds; 0 when it is no such time.
int64_t ReadAge(const std::string& text) {
  int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || end - unit != 1 || count <= 0 || count > 100'000) return 0;
  switch (*unit) {
    case 'w':
      return count * 7 * 86'400;
    case 'd':
      return count * 86'400;
    case 'h':
      return count * 3600;
    case 'm':
      return count * 60;
    default:
      return 0;
  }
}

std::string Said(const PruneRunsResponse& answer, const Options& options, const char* verb) {
  const std::string what =
      options.checkpoints
          ? fmt::format("the checkpoints of {} runs", CountText(answer.runs()))
          : fmt::format("{} runs, {} points", CountText(answer.runs()), CountText(answer.points()));
  std::string text = fmt::format("{} {}, {} of files", verb, what, BytesText(answer.file_bytes()));
  if (answer.kept() > 0) {
    text += fmt::format("; kept {} that are pinned, have not ended or are others'",
                        CountText(answer.kept()));
  }
  return text;
}

absl::StatusOr<PruneRunsResponse> Call(ApiClient& client, const PruneRunsRequest& request) {
  return client.Call(client.runs(), &RunService::Stub::PruneRuns, request, kPatience);
}

int Prune(Context& context, const Options& options) {
  PruneRunsRequest request;
  request.set_filter(options.filter);
  request.set_checkpoints_only(options.checkpoints);
  request.set_validate_only(true);
  if (!options.older_than.empty()) {
    const int64_t age = ReadAge(options.older_than);
    if (age == 0) {
      return context.FailUsage(fmt::format(
          "--older-than: \"{}\" is no time; use 90d, 2w, 12h or 30m", Clean(options.older_than)));
    }
    const auto before = TimeUtil::SecondsToTimestamp(TimeUtil::GetCurrentTime().seconds() - age);
    const std::string ended = "ended<" + TimeUtil::ToString(before);
    request.set_filter(options.filter.empty() ? ended
                                              : fmt::format("({}) {}", options.filter, ended));
  }
  if (request.filter().empty()) {
    return context.FailUsage("say which runs: a filter, --older-than, or both");
  }
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  absl::StatusOr<PruneRunsResponse> answer = Call(**client, request);
  if (!answer.ok()) return context.Fail(answer.status());
  const bool only_look = options.dry_run || answer->runs() == 0;
  if (!only_look && !options.yes) {
    context.terminal.Print(Said(*answer, options, "This deletes"));
    const absl::StatusOr<bool> sure = Ask(context, "For good?");
    if (!sure.ok()) return context.Fail(sure.status());
    if (!*sure) return kExitOk;
  }
  if (!only_look) {
    request.set_validate_only(false);
    answer = Call(**client, request);
    if (!answer.ok()) return context.Fail(answer.status());
  }
  if (context.json) {
    context.PrintJson(*answer);
  } else {
    context.terminal.Print(Said(*answer, options, only_look ? "would delete" : "deleted"));
  }
  return kExitOk;
}

}  // namespace

void AddPrune(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("prune", "Delete all runs that a filter names, or their checkpoints");
  command->add_option("filter", options->filter, "Which runs, as in ls");
  command->add_option("--older-than", options->older_than, "Only those that ended so long ago: 90d")
      ->type_name("TIME");
  command->add_flag("--checkpoints", options->checkpoints,
                    "Keep runs and curves, delete only checkpoints");
  command->add_flag("--dry-run", options->dry_run, "Only say what would be deleted");
  command->add_flag("-y,--yes", options->yes, "Do not ask");
  command->footer(
      "Examples:\n  normlab prune 'state=failed' --older-than 90d --dry-run\n"
      "  normlab prune 'NOT label:*' --older-than 4w --checkpoints --yes\n"
      "\nRuns that have not ended, and pinned ones, are never deleted; archived ones only when "
      "the\n"
      "filter says something about `archived`.");
  command->callback([&context, options] { context.exit_code = Prune(context, *options); });
}

}  // namespace normlab::client
