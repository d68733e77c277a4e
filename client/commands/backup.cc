// normlab backup: a copy of the database, while runs go on.
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <thread>

#include "client/commands/commands.h"
#include "client/interrupt.h"
#include "client/private_file.h"
#include "client/storage_progress.h"
#include "client/term/text.h"
#include "server/export/points_json.h"

namespace normlab::client {
namespace {

using normlab::v1::BackupResponse;

struct Options {
  std::string path;
  bool force = false;
};

// Cancels a call soon after Ctrl-C.
class CancelOnInterrupt {
 public:
  explicit CancelOnInterrupt(grpc::ClientContext& call) {
    thread_ = std::thread([this, &call] {
      while (!ended_ && !InterruptGuard::Interrupted()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      if (!ended_) call.TryCancel();
    });
  }
  ~CancelOnInterrupt() {
    ended_ = true;
    thread_.join();
  }

 private:
  InterruptGuard guard_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// Writes what comes into `file`; the bytes written.
absl::StatusOr<int64_t> Receive(Context& context, ApiClient& client, PrivateFile& file) {
  grpc::ClientContext call;  // without a deadline: a large database takes its time
  client.Prepare(call);
  const CancelOnInterrupt cancel(call);
  const auto reader = client.storage().Backup(&call, normlab::v1::BackupRequest());
  StorageProgressLine line(context);
  BackupResponse message;
  int64_t bytes = 0, total = 0;
  absl::Status written;
  while (reader->Read(&message)) {
    if (message.has_progress()) {
      line.Show(message.progress());
      continue;
    }
    if (bytes == 0) total = message.total_bytes();
    bytes += static_cast<int64_t>(message.data().size());
    if (written = file.Write(message.data()); !written.ok()) {
      call.TryCancel();
      break;
    }
    normlab::v1::StorageProgress sending;
    sending.set_stage("sending");
    sending.set_done(bytes);
    sending.set_total(total);
    line.Show(sending);
  }
  const grpc::Status status = reader->Finish();
  if (!written.ok()) return written;
  if (InterruptGuard::Interrupted()) return absl::CancelledError("interrupted; nothing was kept");
  if (!status.ok()) return FromGrpc(status);
  if (bytes == total && bytes > 0) return bytes;
  return absl::DataLossError(fmt::format("{} of {} bytes came", bytes, total));
}

int Backup(Context& context, const Options& options) {
  auto file = PrivateFile::Create(options.path, options.force);
  if (!file.ok()) return context.Fail(file.status());
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  absl::StatusOr<int64_t> bytes = Receive(context, **client, **file);
  if (bytes.ok()) {
    if (absl::Status status = (*file)->Commit(); !status.ok()) bytes = status;
  }
  if (!bytes.ok()) {
    const int code = context.Fail(bytes.status());
    return absl::IsCancelled(bytes.status()) ? kExitInterrupted : code;
  }
  if (context.json) {
    std::string json = "{\"path\":";
    exporter::AppendJsonString(json, options.path);
    context.terminal.Print(json + fmt::format(",\"bytes\":{}}}", *bytes));
  } else {
    context.terminal.Print(fmt::format("{}: {}, checked", Clean(options.path), BytesText(*bytes)));
  }
  return kExitOk;
}

}  // namespace

void AddBackup(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("backup", "Write a checked copy of the database, while runs go on");
  command->add_option("-o,--output", options->path, "The new file, for you only (0600)")
      ->type_name("FILE")
      ->required();
  command->add_flag("--force", options->force, "Replace FILE if it is there");
  command->footer(
      "Examples:\n  normlab backup -o normlab-2026-11-30.db\n"
      "\nThe copy has runs, curves, users and everything else that is in the database; "
      "checkpoints\n"
      "are files of the data folder (runs/) and are copied as such. To restore, put it as\n"
      "normlab.db into a new data folder. For admins.");
  command->callback([&context, options] { context.exit_code = Backup(context, *options); });
}

}  // namespace normlab::client
