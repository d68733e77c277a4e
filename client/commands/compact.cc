// normlab compact: gives space that deleted runs left in the database back to the disk.
#include <fmt/format.h>

#include "client/commands/commands.h"
#include "client/storage_progress.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

int Compact(Context& context) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  grpc::ClientContext call;  // without a deadline: Ctrl-C ends it, and what is done is done
  (*client)->Prepare(call);
  const auto reader =
      (*client)->storage().CompactStorage(&call, normlab::v1::CompactStorageRequest());
  normlab::v1::CompactStorageResponse message, last;
  {
    StorageProgressLine line(context);
    while (reader->Read(&message)) {
      if (message.has_progress()) line.Show(message.progress());
      if (message.complete()) last = message;
    }
  }
  if (const grpc::Status status = reader->Finish(); !status.ok()) {
    return context.Fail(FromGrpc(status));
  }
  if (context.json) {
    context.PrintJson(last);
  } else {
    context.terminal.Print(fmt::format("{} before, {} now", BytesText(last.bytes_before()),
                                       BytesText(last.bytes_after())));
  }
  return kExitOk;
}

}  // namespace

void AddCompact(CLI::App& program, Context& context) {
  CLI::App* command = program.add_subcommand(
      "compact", "Give space that deleted runs left in the database back to the disk");
  command->footer(
      "Examples:\n  normlab compact\n"
      "\nRuns go on meanwhile. A database that an early version made is written anew first, once;\n"
      "while that lasts, points wait in the spools of their runs. For admins.");
  command->callback([&context] { context.exit_code = Compact(context); });
}

}  // namespace normlab::client
