// What the audit says of changes of runs and experiments.
#ifndef NORMLAB_SERVER_APP_AUDIT_LINES_H_
#define NORMLAB_SERVER_APP_AUDIT_LINES_H_

#include <string>
#include <string_view>

#include "normlab/v1/experiment_service.pb.h"
#include "normlab/v1/run.pb.h"
#include "server/storage/audit.h"

namespace normlab::app {

// A run that was made: its name, and the settings that it was given.
storage::AuditLine CreationLine(const v1::Run& run);

// An experiment that was made, with so many runs.
storage::AuditLine CreationLine(const v1::Experiment& experiment, size_t runs);

// A run that somebody changed from one state to another.
storage::AuditLine StateLine(std::string_view action, const v1::Run& run, v1::Run::State before);

// What people say of a run, its class and what it waits for, before and after; nothing of what
// stays the same.
storage::AuditLine DescriptionLine(const v1::Run& before, const v1::Run& after);

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_AUDIT_LINES_H_
