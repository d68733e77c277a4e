// normlab audit: who changed what.
#include <algorithm>
#include <memory>

#include "client/commands/commands.h"
#include "client/local_time.h"
#include "client/run_ref.h"
#include "client/term/table.h"

namespace normlab::client {
namespace {

using normlab::v1::AuditEvent;
using normlab::v1::ListAuditEventsRequest;
using normlab::v1::ListAuditEventsResponse;
using normlab::v1::UserService;

constexpr int kPage = 1000;

struct Options {
  std::string run;
  std::string user;
  int limit = 50;
};

// A run that was deleted has lines, but only its whole id stands for it.
absl::StatusOr<std::string> RunId(ApiClient& client, const std::string& text) {
  const auto run = ResolveRun(client, text);
  if (run.ok()) return run->id();
  constexpr size_t kIdLength = 26;
  if (absl::IsNotFound(run.status()) && text.size() == kIdLength) return text;
  return run.status();
}

absl::StatusOr<std::vector<AuditEvent>> Read(ApiClient& client, ListAuditEventsRequest request,
                                             int limit) {
  std::vector<AuditEvent> events;
  do {
    const int wanted = limit == 0 ? kPage : limit - static_cast<int>(events.size());
    request.set_page_size(std::min(kPage, wanted));
    const absl::StatusOr<ListAuditEventsResponse> page =
        client.Call(client.users(), &UserService::Stub::ListAuditEvents, request);
    if (!page.ok()) return page.status();
    events.insert(events.end(), page->events().begin(), page->events().end());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty() &&
           (limit == 0 || static_cast<int>(events.size()) < limit));
  return events;
}

int Audit(Context& context, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  ListAuditEventsRequest request;
  request.set_user(options.user);
  if (!options.run.empty()) {
    const absl::StatusOr<std::string> run = RunId(**client, options.run);
    if (!run.ok()) return context.Fail(run.status());
    request.set_run(*run);
  }
  const auto events = Read(**client, request, options.limit);
  if (!events.ok()) return context.Fail(events.status());
  if (context.json) {
    for (const AuditEvent& event : *events) context.PrintJson(event);
    return kExitOk;
  }
  Table table({{"time"},
               {"user"},
               {"action"},
               {"of"},
               {"detail", Align::kLeft, /*shrinks=*/true},
               {"from"}});
  for (const AuditEvent& event : *events) {
    table.Add({{LocalTime(event.time())},
               {event.user().empty() ? "(the server)" : Clean(event.user())},
               {Clean(event.action())},
               {Clean(event.run().empty() ? event.subject() : event.run())},
               {Clean(event.detail())},
               {Clean(event.origin())}});
  }
  table.PrintTo(context.terminal);
  return kExitOk;
}

}  // namespace

void AddAudit(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("audit", "Show who changed what, newest first");
  command->add_option("--run", options->run, "Only of this run; a deleted one by its whole id")
      ->type_name("RUN");
  command->add_option("--user", options->user, "Only what this user did")->type_name("NAME");
  command->add_option("-n,--limit", options->limit, "At most so many lines; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->footer(
      "Examples:\n  normlab audit --run 01J9ZK\n  normlab audit --user ada -n 0 --json");
  command->callback([&context, options] { context.exit_code = Audit(context, *options); });
}

}  // namespace normlab::client
