// normlab probe: measures models that are being trained, and shows the numbers.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "client/commands/commands.h"
#include "client/interrupt.h"
#include "client/probe_numbers.h"
#include "client/run_ref.h"
#include "client/term/text.h"
#include "client/watch_stream.h"

namespace normlab::client {
namespace {

using normlab::v1::Column;
using normlab::v1::ReadSeriesRequest;
using normlab::v1::Run;
using normlab::v1::RunService;
using normlab::v1::WatchRunsRequest;
using normlab::v1::WatchRunsResponse;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLook{100};  // how soon Ctrl-C is noticed

struct Options {
  std::vector<std::string> references;
  double timeout = 60;  // seconds
};

// The first step after `step` of which the column says that the model was measured; 0: none.
int64_t MeasuredStep(const Column& column, int64_t step) {
  if (column.name() != kProbeMark) return 0;
  for (const int64_t measured : column.steps()) {
    if (measured > step) return measured;
  }
  return 0;
}

int64_t MeasuredStep(const WatchRunsResponse& event, int64_t step) {
  for (const Column& column : event.points().columns()) {
    if (const int64_t measured = MeasuredStep(column, step); measured > 0) return measured;
  }
  return 0;
}

// Of a run that trains no more and whose points are all stored: the step that was measured, or that
// there is none.
absl::StatusOr<int64_t> LastHope(ApiClient& client, const Run& run, int64_t step) {
  ReadSeriesRequest request;
  request.set_run(run.id());
  request.add_names(kProbeMark);
  request.set_from_step(step + 1);
  const auto stored = client.Call(client.runs(), &RunService::Stub::ReadSeries, request);
  if (!stored.ok()) return stored.status();
  for (const auto& series : stored->columns()) {
    if (const int64_t measured = MeasuredStep(series.column(), step); measured > 0) return measured;
  }
  return absl::FailedPreconditionError(
      fmt::format("{} is {} and had no further step: nothing was measured",
                  Clean(run.display_name()), StateWord(run.state())));
}

// The run of an event after which there will be no points of its attempt.
const Run* RunAtRest(const WatchRunsResponse& event) {
  if (event.has_end()) return &event.end().run();
  if (!event.has_run()) return nullptr;
  const Run::State state = event.run().state();
  const bool rests = IsTerminal(state) || state == Run::STATE_PAUSED || state == Run::STATE_QUEUED;
  return rests ? &event.run() : nullptr;
}

absl::Status TimedOut(const Run& run, double seconds) {
  return absl::AbortedError(
      fmt::format("no numbers of {} after {}: its step takes longer, and they will be in its "
                  "curves then (normlab export {}); --timeout waits longer",
                  Clean(run.display_name()), DurationText(seconds), run.id()));
}

// Waits for the step that was measured after `run` was as it is here. CANCELLED after Ctrl-C.
absl::StatusOr<int64_t> WaitForStep(Context& context, ApiClient& client, const Run& run,
                                    const Options& options) {
  const int64_t known = run.progress().step();
  WatchRunsRequest request;
  request.add_runs(run.id());
  request.set_from_step(known + 1);
  WatchStream stream([&context] { return context.Connect(); }, request);
  const auto deadline = Clock::now() + std::chrono::duration<double>(options.timeout);
  WatchRunsResponse event;
  while (!InterruptGuard::Interrupted()) {
    const WatchStream::Result result = stream.Next(kLook, event);
    if (result == WatchStream::kEnd) {
      return stream.status().ok() ? LastHope(client, run, known) : stream.status();
    }
    if (result == WatchStream::kEvent) {
      if (const int64_t step = MeasuredStep(event, known); step > 0) return step;
      if (const Run* at_rest = RunAtRest(event)) return LastHope(client, *at_rest, known);
    }
    if (Clock::now() > deadline) return TimedOut(run, options.timeout);
  }
  return absl::CancelledError("interrupted");
}

// The run as it was before it was asked: what is measured may be stored before the answer is here.
absl::StatusOr<Run> Ask(ApiClient& client, const std::string& reference) {
  absl::StatusOr<Run> run = ResolveRun(client, reference);
  if (!run.ok()) return run;
  normlab::v1::ProbeRunRequest request;
  request.set_id(run->id());
  const auto asked = client.Call(client.runs(), &RunService::Stub::ProbeRun, request);
  if (!asked.ok()) return asked.status();
  return run;
}

absl::Status Show(Context& context, const Run& run, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  const absl::StatusOr<int64_t> step = WaitForStep(context, **client, run, options);
  if (!step.ok()) return step.status();
  const absl::StatusOr<ProbeNumbers> numbers = ReadProbeNumbers(**client, run, *step);
  if (!numbers.ok()) return numbers.status();
  if (context.json) {
    context.terminal.Print(ProbeJson(*numbers));
  } else {
    PrintProbe(*numbers, context.terminal);
  }
  return absl::OkStatus();
}

// Asks all, then waits for each. Goes on after a failure: one run that has ended must not keep the
// numbers of the others back.
int Probe(Context& context, const Options& options) {
  InterruptGuard guard;
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  int exit_code = kExitOk;
  std::vector<Run> runs;
  for (const std::string& reference : options.references) {
    absl::StatusOr<Run> run = Ask(**client, reference);
    if (run.ok()) {
      runs.push_back(*std::move(run));
    } else {
      exit_code = context.Fail(run.status());
    }
  }
  for (const Run& run : runs) {
    const absl::Status status = Show(context, run, options);
    if (absl::IsCancelled(status) && InterruptGuard::Interrupted()) {
      if (!context.json) {
        context.terminal.PrintError("\nStopped waiting; what is measured will be in the curves.");
      }
      return kExitInterrupted;
    }
    if (!status.ok()) exit_code = context.Fail(status);
  }
  return exit_code;
}

}  // namespace

void AddProbe(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("probe", "Measure models that are being trained, block by block");
  command->add_option("run", options->references, "Ids, prefixes of ids, or names")->required();
  command
      ->add_option("--timeout", options->timeout, "How long to wait for a run's next step, seconds")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  command->footer(
      "Examples:\n  normlab probe 01J9ZK\n  normlab probe \"Pre-Norm · no warmup\" 01J9ZM\n"
      "  normlab probe 01J9ZK --json | jq '.values[\"block/1/jacobian_gain\"]'\n"
      "\nA run is measured before its next step, on sequences that it does not train on, and "
      "trains\n"
      "on exactly as if it had not been. For each block: entropy of attention (nats) and its\n"
      "largest score; the angle between input and output (0 the same, 0.5 orthogonal); and of the\n"
      "Jacobian J of output by input the mean gain |J'v|/|v|, the largest singular value, and the\n"
      "distance |(J-I)'v|/|v| from the identity. The numbers are series of that step, too. To\n"
      "measure all along, submit with --probe_every.");
  command->callback([&context, options] { context.exit_code = Probe(context, *options); });
}

}  // namespace normlab::client
