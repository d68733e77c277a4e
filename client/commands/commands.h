// The commands of normlab, one file each. Each function adds its command to the program; the
// command runs when it was the one given, and leaves its exit code in the context.
#ifndef NORMLAB_CLIENT_COMMANDS_COMMANDS_H_
#define NORMLAB_CLIENT_COMMANDS_COMMANDS_H_

#include <CLI/CLI.hpp>

#include "client/context.h"

namespace normlab::client {

// after and priority.
void AddAfter(CLI::App& program, Context& context);
void AddArticle(CLI::App& program, Context& context);
void AddAudit(CLI::App& program, Context& context);
void AddBackup(CLI::App& program, Context& context);
void AddCancel(CLI::App& program, Context& context);
void AddCompact(CLI::App& program, Context& context);
void AddCompletion(CLI::App& program, Context& context);
void AddDevices(CLI::App& program, Context& context);
void AddDoctor(CLI::App& program, Context& context);
void AddExport(CLI::App& program, Context& context);
// hold and release.
void AddHold(CLI::App& program, Context& context);
void AddLabel(CLI::App& program, Context& context);
void AddLog(CLI::App& program, Context& context);
// login, logout.
void AddLogin(CLI::App& program, Context& context);
void AddLs(CLI::App& program, Context& context);
void AddMove(CLI::App& program, Context& context);
void AddNote(CLI::App& program, Context& context);
void AddOpen(CLI::App& program, Context& context);
void AddPause(CLI::App& program, Context& context);
// pin, unpin, archive, unarchive.
void AddPin(CLI::App& program, Context& context);
void AddPlot(CLI::App& program, Context& context);
void AddPreset(CLI::App& program, Context& context);
void AddProbe(CLI::App& program, Context& context);
void AddPrune(CLI::App& program, Context& context);
void AddQueue(CLI::App& program, Context& context);
void AddRename(CLI::App& program, Context& context);
void AddResume(CLI::App& program, Context& context);
void AddRetry(CLI::App& program, Context& context);
void AddRm(CLI::App& program, Context& context);
void AddShow(CLI::App& program, Context& context);
void AddSubmit(CLI::App& program, Context& context);
void AddSweep(CLI::App& program, Context& context);
void AddUser(CLI::App& program, Context& context);
void AddWatch(CLI::App& program, Context& context);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_COMMANDS_COMMANDS_H_
