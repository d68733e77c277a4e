// normlab export: curves, and trained weights, as files for other programs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
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
  std::string attempts = "default";
};

using Sink = std::function<void(std::string_view)>;

void Report(Context& context, const std::string& path, int64_t rows, const char* unit) {
  if (context.json) {
    std::string json = "{\"path\":";
    exporter::AppendJsonString(json, path);
    context.terminal.Print(json + fmt::format(",\"{}\":{}}}", unit, rows));
  } else {
    context.terminal.Print(fmt::format("{}: {} {}", Clean(path), CountText(rows), unit));
  }
}

// What a terminal shows while a long export goes on: one line, redrawn a few times a second.
class ExportProgress {
 public:
  ExportProgress(Context& context, size_t runs, bool to_file)
      : terminal_(context.terminal),
        runs_(runs),
        shown_(to_file && !context.json && context.terminal.smart()) {}
  ~ExportProgress() { End(); }

  void Begin(const Run& run) {
    ++run_;
    name_ = CurveName(run);
    steps_ = total_ = 0;
    started_ = last_ = std::chrono::steady_clock::now();
  }

  void Take(const PointsPiece& piece) {
    if (piece.total_steps > 0) total_ = piece.total_steps;
    size_t longest = 0;
    for (const exporter::Series& series : piece.series) {
      longest = std::max(longest, series.steps.size());
    }
    steps_ += static_cast<int64_t>(longest);
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    terminal_.ShowFrame({Fit(Text(now), terminal_.size().columns - 1)});
    drawn_ = true;
  }

  void End() {
    if (!drawn_) return;
    terminal_.ShowFrame({});
    terminal_.EndFrame();
    drawn_ = false;
  }

 private:
  std::string Text(std::chrono::steady_clock::time_point now) const {
    std::string text = fmt::format("{}: {} of {} steps", Clean(name_), CountText(steps_),
                                   CountText(std::max(steps_, total_)));
    if (runs_ > 1) text = fmt::format("run {} of {}, ", run_, runs_) + text;
    const double seconds = std::chrono::duration<double>(now - started_).count();
    if (steps_ == 0 || total_ <= steps_) return text;
    const auto left = static_cast<double>(total_ - steps_) / static_cast<double>(steps_);
    return text + ", about " + DurationText(seconds * left) + " left";
  }

  Terminal& terminal_;
  const size_t runs_;
  const bool shown_;
  bool drawn_ = false;
  size_t run_ = 0;
  std::string name_;
  int64_t steps_ = 0, total_ = 0;
  std::chrono::steady_clock::time_point started_, last_;
};

// Every point of a run, piece by piece.
absl::Status ReadRunPoints(ApiClient& client, const Run& run, const Options& options,
                           const std::vector<std::string>& names, ExportProgress& progress,
                           const std::function<void(const PointsPiece&)>& write) {
  normlab::v1::ReadPointsRequest request;
  request.set_run(run.id());
  request.set_all_attempts(options.attempts == "all");
  for (const std::string& name : names) request.add_names(name);
  progress.Begin(run);
  return ReadAllPoints(client, request, [&](const PointsPiece& piece) {
    progress.Take(piece);
    write(piece);
    return absl::OkStatus();
  });
}

// The columns have to be known before the first row: series that turn up later are left out.
absl::Status WriteCsv(ApiClient& client, const std::vector<Run>& runs, const Options& options,
                      ExportProgress& progress, const Sink& sink, int64_t& rows) {
  std::vector<exporter::CsvRun> csv_runs;
  std::vector<std::string> names;
  for (const Run& run : runs) {
    csv_runs.push_back({run.id(), CurveName(run)});
    const auto found = ReadSeriesNames(client, run, options.attempts == "all");
    if (!found.ok()) return found.status();
    names.insert(names.end(), found->begin(), found->end());
  }
  const std::vector<std::string> columns = exporter::CsvColumns(names);
  exporter::CsvWriter csv(
      columns,
      {.with_id = exporter::NamesCollide(csv_runs), .with_attempt = options.attempts == "all"},
      sink);
  for (size_t i = 0; i < runs.size(); ++i) {
    const absl::Status status = ReadRunPoints(
        client, runs[i], options, columns, progress,
        [&](const PointsPiece& piece) { csv.Write(csv_runs[i], piece.attempt, piece.series); });
    if (!status.ok()) return status;
  }
  csv.Flush();
  rows = csv.rows();
  return absl::OkStatus();
}

absl::Status WriteJsonLines(ApiClient& client, const std::vector<Run>& runs, const Options& options,
                            ExportProgress& progress, const Sink& sink, int64_t& lines) {
  for (const Run& run : runs) {
    const absl::Status status =
        ReadRunPoints(client, run, options, {}, progress, [&](const PointsPiece& piece) {
          if (piece.series.empty()) return;
          sink(exporter::PointsJson(run.id(), piece.attempt, piece.series) + "\n");
          ++lines;
        });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int ExportCurves(Context& context, ApiClient& client, const std::vector<Run>& runs,
                 const Options& options) {
  const bool csv = options.format == "csv";
  const auto write = [&](const Sink& sink, int64_t& rows) {
    ExportProgress progress(context, runs.size(), options.path != "-");
    return csv ? WriteCsv(client, runs, options, progress, sink, rows)
               : WriteJsonLines(client, runs, options, progress, sink, rows);
  };
  int64_t rows = 0;
  if (options.path == "-") {
    const absl::Status status =
        write([&](std::string_view piece) { context.terminal.Write(piece); }, rows);
    return status.ok() ? kExitOk : context.Fail(status);
  }
  OutputFile file(options.path);
  absl::Status status = write([&](std::string_view piece) { file.Write(piece); }, rows);
  if (status.ok()) status = file.Commit();
  if (!status.ok()) return context.Fail(status);
  Report(context, options.path, rows, csv ? "rows" : "lines");
  return kExitOk;
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
  return ExportCurves(context, **client, *runs, options);
}

}  // namespace

void AddExport(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "export", "Write the curves of runs, or the weights of one, to a file");
  command->add_option("run", options->references, "Ids, prefixes of ids, or names")->required();
  command
      ->add_option("--format", options->format,
                   "csv, jsonl (JSON lines), or safetensors for the latest checkpoint of a run")
      ->check(CLI::IsMember({"csv", "jsonl", "safetensors"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->path, "File; - is standard output")
      ->type_name("PATH")
      ->capture_default_str();
  command
      ->add_option("--attempts", options->attempts,
                   "default: the curve that charts show; all: every attempt with all its points")
      ->check(CLI::IsMember({"default", "all"}))
      ->capture_default_str();
  command->footer(
      "Examples:\n  normlab export 01J9ZK -o run.csv\n  normlab export 01J9ZK 01J9ZM | head\n"
      "  normlab export 01J9ZK --format safetensors -o weights.safetensors\n"
      "\nColumns: run,step,loss,gradient_norm,learning_rate, then every other series; run_id\n"
      "follows run where names collide, attempt comes before step with --attempts all. Numbers\n"
      "read back as the same doubles; NaN, Infinity and -Infinity are written so, and an empty\n"
      "cell is a step without that series.");
  command->callback([&context, options] { context.exit_code = Export(context, *options); });
}

}  // namespace normlab::client
