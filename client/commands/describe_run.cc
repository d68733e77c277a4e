#include "client/commands/describe_run.h"

#include <fmt/format.h>

#include <memory>

#include "client/run_ref.h"
#include "client/term/text.h"

namespace normlab::client {

using normlab::v1::Run;
using normlab::v1::RunService;

int DescribeRuns(Context& context, const std::vector<std::string>& references,
                 const std::string& field, const std::function<void(Run&)>& change,
                 const std::function<std::string(const Run&)>& print) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  int code = kExitOk;
  for (const std::string& reference : references) {
    absl::StatusOr<Run> run = ResolveRun(**client, reference);
    if (run.ok()) {
      normlab::v1::UpdateRunRequest request;
      *request.mutable_run() = *run;
      change(*request.mutable_run());
      request.mutable_update_mask()->add_paths(field);
      run = (*client)->Call((*client)->runs(), &RunService::Stub::UpdateRun, request);
    }
    if (!run.ok()) {
      code = context.Fail(run.status());
    } else if (context.json) {
      context.PrintJson(*run);
    } else {
      context.terminal.Print(fmt::format("{}: {}", Clean(run->display_name()), print(*run)));
    }
  }
  return code;
}

}  // namespace normlab::client
