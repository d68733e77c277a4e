// What cancel, pause, resume, retry, hold, release and move have in common: one call for each of
// some runs.
#ifndef NORMLAB_CLIENT_COMMANDS_CHANGE_RUNS_H_
#define NORMLAB_CLIENT_COMMANDS_CHANGE_RUNS_H_

#include <fmt/format.h>

#include <string>
#include <vector>

#include "client/context.h"
#include "client/run_ref.h"
#include "client/term/style.h"
#include "client/term/text.h"

namespace normlab::client {

struct ChangedRuns {
  std::vector<normlab::v1::Run> runs;  // those that were changed, as they are now
  int exit_code = kExitOk;             // of the latest failure
};

// Calls `method` for the run that each of `references` stands for, whose id it puts into `request`,
// and prints its state, or what `said` says of it. Goes on after a failure: one run that has ended
// already must not save the others.
template <typename Request>
ChangedRuns ChangeRuns(Context& context, const std::vector<std::string>& references,
                       grpc::Status (normlab::v1::RunService::Stub::*method)(grpc::ClientContext*,
                                                                             const Request&,
                                                                             normlab::v1::Run*),
                       Request request = {}, const std::string& said = "") {
  ChangedRuns changed;
  const auto client = context.Connect();
  if (!client.ok()) {
    changed.exit_code = context.Fail(client.status());
    return changed;
  }
  for (const std::string& reference : references) {
    absl::StatusOr<normlab::v1::Run> run = ResolveRun(**client, reference);
    if (run.ok()) {
      request.set_id(run->id());
      run = (*client)->Call((*client)->runs(), method, request);
    }
    if (!run.ok()) {
      changed.exit_code = context.Fail(run.status());
      continue;
    }
    if (context.json) {
      context.PrintJson(*run);
    } else {
      context.terminal.Print(
          fmt::format("{}: {}", Clean(run->display_name()),
                      said.empty() ? StateText(run->state(), context.terminal.style()) : said));
    }
    changed.runs.push_back(*std::move(run));
  }
  return changed;
}

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_COMMANDS_CHANGE_RUNS_H_
