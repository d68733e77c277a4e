// normlab export: curves, and trained weights, as files for other programs.
#include <fmt/format.h>

#include <memory>

#include "client/commands/commands.h"
#include "client/output_file.h"
#include "client/read_curves.h"
#include "client/run_ref.h"
#include "client/term/text.h"
#include "server/export/csv.h"
#include "server/export/points_json.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

struct Options {
  std::vector<std::string> references;
  std::string format = "csv";
  std::string path = "-";
};

void Report(Context& context, const std::string& path, int64_t rows) {
  if (context.json) {
    std::string json = "{\"path\":";
    exporter::AppendJsonString(json, path);
    context.terminal.Print(json + fmt::format(",\"rows\":{}}}", rows));
  } else {
    context.terminal.Print(fmt::format("{}: {} rows", Clean(path), CountText(rows)));
  }
}

// The latest checkpoint of a run, as it arrives.
absl::Status CopyCheckpoint(ApiClient& client, const Run& run, OutputFile& file, int64_t& step,
                            int64_t& bytes) {
  normlab::v1::ReadCheckpointRequest request;
  request.set_run(run.id());
  grpc::ClientContext call;  // without a deadline: a large file takes its time
  client.Prepare(call);
  const auto reader = client.runs().ReadCheckpoint(&call, request);
  normlab::v1::ReadCheckpointResponse piece;
  int64_t total = 0;
  while (reader->Read(&piece)) {
    if (bytes == 0) {
      step = piece.step();
      total = piece.total_bytes();
    }
    file.Write(piece.data());
    bytes += static_cast<int64_t>(piece.data().size());
  }
  if (const grpc::Status status = reader->Finish(); !status.ok()) return FromGrpc(status);
  if (bytes == total) return absl::OkStatus();
  return absl::DataLossError(fmt::format("{} of {} bytes came", bytes, total));
}

int ExportCheckpoint(Context& context, ApiClient& client, const std::vector<Run>& runs,
                     const Options& options) {
  if (runs.size() != 1 || options.path == "-") {
    return context.FailUsage(
        "weights are of one run and go into a file: normlab export RUN --format safetensors "
        "-o FILE");
  }
  OutputFile file(options.path);
  int64_t step = 0, bytes = 0;
  absl::Status status = CopyCheckpoint(client, runs.front(), file, step, bytes);
  if (status.ok()) status = file.Commit();
  if (!status.ok()) return context.Fail(status);
  if (context.json) {
    std::string json = "{\"path\":";
    exporter::AppendJsonString(json, options.path);
    context.terminal.Print(json + fmt::format(",\"step\":{},\"bytes\":{}}}", step, bytes));
  } else {
    context.terminal.Print(fmt::format("{}: checkpoint of step {}, {}", Clean(options.path),
                                       CountText(step), BytesText(bytes)));
  }
  return kExitOk;
}

int Export(Context& context, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const absl::StatusOr<std::vector<Run>> runs = ResolveRuns(**client, options.references);
  if (!runs.ok()) return context.Fail(runs.status());
  if (options.format == "safetensors") {
    return ExportCheckpoint(context, **client, *runs, options);
  }
  const auto curves = ReadCurves(**client, *runs, {});
  if (!curves.ok()) return context.Fail(curves.status());
  if (options.path == "-") {
    exporter::WriteCsv(*curves, {}, [&](std::string_view piece) { context.terminal.Write(piece); });
    return kExitOk;
  }
  OutputFile file(options.path);
  const int64_t rows =
      exporter::WriteCsv(*curves, {}, [&](std::string_view piece) { file.Write(piece); });
  if (absl::Status status = file.Commit(); !status.ok()) return context.Fail(status);
  Report(context, options.path, rows);
  return kExitOk;
}

}  // namespace

void AddExport(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "export", "Write the curves of runs, or the weights of one, to a file");
  command->add_option("run", options->references, "Ids, prefixes of ids, or names")->required();
  command
      ->add_option("--format", options->format,
                   "csv, or safetensors for the latest checkpoint of a run")
      ->check(CLI::IsMember({"csv", "safetensors"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->path, "File; - is standard output")
      ->type_name("PATH")
      ->capture_default_str();
  command->footer(
      "Examples:\n  normlab export 01J9ZK -o run.csv\n  normlab export 01J9ZK 01J9ZM | head\n"
      "  normlab export 01J9ZK --format safetensors -o weights.safetensors\n"
      "\nColumns: run,step,loss,gradient_norm,learning_rate, then every other series; run_id\n"
      "follows run where names collide.");
  command->callback([&context, options] { context.exit_code = Export(context, *options); });
}

}  // namespace normlab::client
