// normlab log: what the program that trains a run printed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "client/commands/commands.h"
#include "client/interrupt.h"
#include "client/run_ref.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::ReadLogRequest;
using normlab::v1::ReadLogResponse;
using normlab::v1::Run;
using normlab::v1::RunService;

constexpr std::chrono::milliseconds kLook{300};  // how often a log is looked at
constexpr int32_t kPiece = 1 << 20;              // bytes asked for at once

struct Options {
  std::string reference;
  int32_t attempt = 0;
  std::optional<int64_t> tail;  // lines
  bool follow = false;
};

// Prints whole lines as they become complete, with what would steer a terminal taken out.
class LineWriter {
 public:
  explicit LineWriter(Terminal& terminal) : terminal_(terminal) {}

  void Write(std::string_view data) {
    rest_ += data;
    size_t begin = 0;
    for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      terminal_.Print(Clean(std::string_view(rest_).substr(begin, end - begin)));
    }
    rest_.erase(0, begin);
  }
  void Finish() {
    if (!rest_.empty()) terminal_.Print(Clean(rest_));
    rest_.clear();
  }

 private:
  Terminal& terminal_;
  std::string rest_;
};

absl::StatusOr<ReadLogResponse> ReadPiece(ApiClient& client, const ReadLogRequest& request) {
  return client.Call(client.runs(), &RunService::Stub::ReadLog, request);
}

// Sets where the last `lines` lines of the log begin, and the attempt whose log it is.
absl::Status FindTail(ApiClient& client, int64_t lines, ReadLogRequest& request) {
  request.set_offset(-1);  // to learn the size
  absl::StatusOr<ReadLogResponse> piece = ReadPiece(client, request);
  if (!piece.ok()) return piece.status();
  request.set_attempt(piece->attempt());
  const int64_t size = piece->size();
  request.set_offset(lines == 0 ? size : 0);
  int64_t seen = 0;
  for (int64_t end = lines == 0 ? 0 : size; end > 0; end -= static_cast<int64_t>(kPiece)) {
    ReadLogRequest before = request;
    before.set_offset(std::max<int64_t>(end - kPiece, 0));
    before.set_max_bytes(static_cast<int32_t>(end - before.offset()));
    piece = ReadPiece(client, before);
    if (!piece.ok()) return piece.status();
    for (size_t i = piece->data().size(); i > 0; --i) {
      const int64_t next = piece->offset() + static_cast<int64_t>(i);
      if (piece->data()[i - 1] != '\n' || next == size || ++seen < lines) continue;
      request.set_offset(next);
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

// Whether anything can still be added to the log of `attempt`: the run goes on, and by no later
// one.
absl::StatusOr<bool> MayGrow(ApiClient& client, const std::string& id, int32_t attempt) {
  normlab::v1::GetRunRequest request;
  request.set_id(id);
  const absl::StatusOr<Run> run = client.Call(client.runs(), &RunService::Stub::GetRun, request);
  if (!run.ok()) return run.status();
  if (attempt == 0) return !IsTerminal(run->state());
  for (const auto& known : run->attempts()) {
    if (known.number() == attempt) return !known.has_end_time();
  }
  return false;
}

// The log from request.offset on; with `follow` until its attempt has ended.
absl::Status Copy(Context& context, ApiClient& client, ReadLogRequest request, bool follow) {
  LineWriter lines(context.terminal);
  bool may_grow = false;
  do {
    if (follow) {
      // Asked before the log is read, so that nothing is added after the last reading.
      const absl::StatusOr<bool> grows = MayGrow(client, request.run(), request.attempt());
      if (!grows.ok()) return grows.status();
      may_grow = *grows;
    }
    while (true) {
      const absl::StatusOr<ReadLogResponse> piece = ReadPiece(client, request);
      if (!piece.ok()) return piece.status();
      request.set_attempt(piece->attempt());  // the log that was begun is read to its end
      if (piece->data().empty()) break;
      request.set_offset(piece->offset() + static_cast<int64_t>(piece->data().size()));
      if (context.json) {
        context.PrintJson(*piece);
      } else {
        lines.Write(piece->data());
      }
    }
    if (may_grow) std::this_thread::sleep_for(kLook);
  } while (may_grow && !InterruptGuard::Interrupted());
  lines.Finish();
  return absl::OkStatus();
}

absl::Status Log(Context& context, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  const absl::StatusOr<Run> run = ResolveRun(**client, options.reference);
  if (!run.ok()) return run.status();
  ReadLogRequest request;
  request.set_run(run->id());
  request.set_attempt(options.attempt);
  request.set_max_bytes(kPiece);
  if (options.tail) {
    const absl::Status found = FindTail(**client, *options.tail, request);
    if (!found.ok()) return found;
  }
  return Copy(context, **client, std::move(request), options.follow);
}

}  // namespace

void AddLog(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("log", "Print what the program that trains a run printed");
  command->add_option("run", options->reference, "Id, prefix of an id, or name")->required();
  command->add_option("--attempt", options->attempt, "Number of the attempt; else the latest")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("-n,--tail", options->tail, "Only the last lines")
      ->type_name("LINES")
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000'000}));
  command->add_flag("-f,--follow", options->follow, "Go on until the attempt has ended");
  command->footer(
      "Examples:\n  normlab log 01J9ZK\n  normlab log trial -n 20 -f\n"
      "  normlab log trial --attempt 1 > first.log\n"
      "\nCharacters that steer a terminal are left out. --json prints pieces of the log as they\n"
      "are, in base64.");
  command->callback([&context, options] {
    InterruptGuard guard;
    const absl::Status status = Log(context, *options);
    if (InterruptGuard::Interrupted()) {
      context.exit_code = kExitInterrupted;
    } else if (!status.ok()) {
      context.exit_code = context.Fail(status);
    }
  });
}

}  // namespace normlab::client
