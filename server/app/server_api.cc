#include "server/app/server_api.h"

#include <utility>

#include "server/app/audit_lines.h"
#include "server/app/file_sizes.h"
#include "server/app/requests.h"
#include "server/app/submit_checks.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/model_size.h"
#include "server/domain/presets.h"
#include "server/domain/run_state.h"
#include "server/domain/settings.h"
#include "server/storage/audit.h"
#include "server/storage/experiments.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using domain::FieldViolation;

std::string NameFromSpec(const v1::RunSpec& spec) {
  return StrCat(spec.placement(), " · ", spec.layers(), " layers · lr ",
                domain::ValueText(spec, "learning_rate"));
}

}  // namespace

ServerApi::ServerApi(Parts parts)
    : parts_(std::move(parts)),
      started_(parts_.clock.Now()),
      failed_logins_(parts_.clock, [](std::string_view origin, int64_t left_out) {
        LogWarning("authentication failed",
                   {{"peer", std::string(origin)}, {"others_before", StrCat(left_out)}});
      }) {
  // New runs come after old ones, though the wall clock may have been set back since.
  const absl::Status status = parts_.store.Read([this](storage::Database& database) {
    const absl::StatusOr<std::string> id = storage::ReadLatestId(database);
    if (id.ok()) ids_.StartAfter(*id);
    return id.status();
  });
  if (!status.ok()) LogWarning("no latest id", {{"error", std::string(status.message())}});
}

absl::Status ServerApi::CheckId(std::string_view field, const std::string& id) {
  if (IsUlid(id)) return absl::OkStatus();
  if (id.empty()) return domain::InvalidFields({{std::string(field), "is missing"}});
  return absl::NotFoundError(
      StrCat("there is no ", field == "experiment" ? "experiment " : "run ", id.substr(0, 64)));
}

// --- runs ---

v1::Run ServerApi::Prepare(const Principal& principal, const v1::Run& wanted,
                           const std::string& prefix, std::vector<FieldViolation>& wrong) {
  v1::Run run;
  const size_t before = wrong.size();
  for (FieldViolation& violation : domain::CheckSpec(wanted.spec(), parts_.limits)) {
    wrong.push_back({prefix + violation.field, std::move(violation.description)});
  }
  run.set_display_name(wanted.display_name());
  *run.mutable_spec() = wanted.spec();
  if (wrong.size() == before) {
    *run.mutable_effective_spec() = domain::EffectiveSpec(wanted.spec());
    CheckFiles(prefix, *run.mutable_effective_spec(), wrong);
    domain::SetModelSize(run.effective_spec(), *run.mutable_summary());
    if (run.display_name().empty()) run.set_display_name(NameFromSpec(run.effective_spec()));
    const std::string device = wanted.device().empty() ? "auto" : wanted.device();
    run.set_device(device);
    *run.mutable_resources() = wanted.resources();
    CheckDevices(prefix, run, wrong);
  }
  CheckQueueFields(wanted, prefix, wrong);
  run.set_priority(wanted.priority());
  run.set_held(wanted.held());
  if (run.held()) run.set_wait_reason(StrCat("held by ", principal.user));
  *run.mutable_after() = wanted.after();
  *run.mutable_resources() = wanted.resources();
  if (!run.display_name().empty()) {
    for (FieldViolation& violation :
         domain::CheckDisplayName(prefix + "display_name", run.display_name())) {
      wrong.push_back(std::move(violation));
    }
  }
  run.set_experiment(wanted.experiment());
  run.set_user(principal.user);
  run.set_state(v1::Run::STATE_QUEUED);
  run.mutable_progress()->set_steps(run.effective_spec().steps());
  return run;
}

// What keeps a device from taking runs for a time is no reason to refuse one: it waits.
void ServerApi::CheckDevices(const std::string& prefix, const v1::Run& run,
                             std::vector<FieldViolation>& wrong) const {
  const std::vector<scheduler::Device> devices = scheduler::OnceAllIsWell(parts_.devices.Devices());
  const std::string never =
      scheduler::WhyNever(run.device(), run.effective_spec().threads(), devices);
  if (!never.empty()) {
    wrong.push_back({prefix + "device", never});
    return;
  }
  for (FieldViolation& violation :
       CheckResources(prefix, run, devices, parts_.devices.gpus_of_a_run())) {
    wrong.push_back(std::move(violation));
  }
}

absl::StatusOr<v1::Run> ServerApi::CreateRun(const Principal& principal,
                                             const v1::CreateRunRequest& request) {
  if (absl::Status status = MayChange(principal); !status.ok()) return status;
  std::vector<FieldViolation> wrong;
  v1::Run run = Prepare(principal, request.run(), "", wrong);
  if (!run.experiment().empty()) {
    const absl::Status found = CheckExperimentOwner(principal, run.experiment());
    if (absl::IsNotFound(found)) {
      wrong.push_back({"experiment", std::string(found.message())});
    } else if (!found.ok()) {
      return found;
    }
  }
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  if (auto may = MayGive(principal, "priority", run.priority()); !may.ok()) return may;
  const auto check = [&run](storage::Database& database) {
    return CheckQueueWords(database, {run}, [](size_t) { return std::string(); });
  };
  if (request.validate_only()) {
    if (absl::Status status = parts_.store.Read(check); !status.ok()) return status;
    return run;
  }
  run.set_id(ids_.Next(parts_.clock.WallMicros()));
  if (absl::Status kept = KeepInits({run}); !kept.ok()) return kept;
  v1::Run stored;
  absl::Status status = parts_.store.writer().Write([&](storage::WriteContext& context) {
    absl::Status written = check(context.database);
    if (written.ok()) written = storage::InsertRun(context, run, &stored);
    if (written.ok()) {
      written = storage::WriteAudit(context, principal.actor(), CreationLine(run));
    }
    return written;
  });
  if (!status.ok()) {
    parts_.files.DropInit(run.id());
    return status;
  }
  parts_.dispatcher.Wake();
  return stored;
}

absl::StatusOr<v1::Run> ServerApi::GetRun(const Principal&, const v1::GetRunRequest& request) {
  if (absl::Status status = CheckId("id", request.id()); !status.ok()) return status;
  absl::StatusOr<v1::Run> run;
  absl::Status status = parts_.store.Read([&](storage::Database& database) {
    run = storage::ReadRun(database, request.id());
    return run.status();
  });
  if (!status.ok()) return status;
  Complete(*run);
  return run;
}

absl::Status ServerApi::CheckOwner(const Principal& principal, const std::string& id) {
  if (principal.role == "admin") return absl::OkStatus();
  if (absl::Status status = MayChange(principal); !status.ok()) return status;
  return parts_.store.Read([&](storage::Database& database) -> absl::Status {
    absl::StatusOr<v1::Run> run = storage::ReadRun(database, id);
    if (!run.ok()) return run.status();
    if (run->user() == principal.user) return absl::OkStatus();
    return absl::PermissionDeniedError(StrCat("run ", id, " belongs to ", run->user(),
                                              "; only its owner or an admin may do that"));
  });
}

absl::Status ServerApi::CheckExperimentOwner(const Principal& principal, const std::string& id) {
  return parts_.store.Read([&](storage::Database& database) -> absl::Status {
    const absl::StatusOr<std::string> user = storage::ReadExperimentUser(database, id);
    if (!user.ok()) return user.status();
    if (principal.role == "admin" || *user == principal.user) return MayChange(principal);
    return absl::PermissionDeniedError(StrCat("experiment ", id, " belongs to ", *user,
                                              "; only its owner or an admin may do that"));
  });
}

absl::StatusOr<v1::Run> ServerApi::ChangeRun(const Principal& principal, const std::string& id,
                                             const Change& change) {
  if (absl::Status status = CheckId("id", id); !status.ok()) return status;
  if (absl::Status status = CheckOwner(principal, id); !status.ok()) return status;
  absl::Status status = change(parts_.dispatcher, id, principal.actor());
  if (!status.ok()) return status;
  v1::GetRunRequest get;
  get.set_id(id);
  return GetRun(principal, get);
}

absl::StatusOr<v1::Run> ServerApi::CancelRun(const Principal& principal,
                                             const v1::CancelRunRequest& request) {
  return ChangeRun(principal, request.id(), &Dispatcher::Cancel);
}

absl::StatusOr<v1::Run> ServerApi::PauseRun(const Principal& principal,
                                            const v1::PauseRunRequest& request) {
  return ChangeRun(principal, request.id(), &Dispatcher::Pause);
}

absl::StatusOr<v1::Run> ServerApi::ResumeRun(const Principal& principal,
                                             const v1::ResumeRunRequest& request) {
  return ChangeRun(principal, request.id(),
                   [&](Dispatcher& dispatcher, const std::string& run, const domain::Actor& who) {
                     const absl::Status may = CheckQueueLimitOf(run);
                     return may.ok() ? dispatcher.Resume(run, who) : may;
                   });
}

absl::StatusOr<v1::Run> ServerApi::RetryRun(const Principal& principal,
                                            const v1::RetryRunRequest& request) {
  return ChangeRun(principal, request.id(),
                   [&](Dispatcher& dispatcher, const std::string& run, const domain::Actor& who) {
                     const absl::Status may = CheckQueueLimitOf(run);
                     return may.ok() ? dispatcher.Retry(run, who, request.from_start()) : may;
                   });
}

absl::StatusOr<v1::Run> ServerApi::ProbeRun(const Principal& principal,
                                            const v1::ProbeRunRequest& request) {
  return ChangeRun(principal, request.id(), &Dispatcher::Probe);
}

// --- metrics ---

void ServerApi::NoteStalled(std::string_view peer) {
  ++stalled_watchers_;
  LogWarning("watcher detached: it took nothing for too long", {{"peer", std::string(peer)}});
}

ServerMetrics ServerApi::Metrics() {
  ServerMetrics metrics;
  parts_.store
      .Read([&](storage::Database& database) {
        storage::Statement select =
            database.Prepared("SELECT state, count(*) FROM runs WHERE state <= 6 GROUP BY state");
        while (select.Step()) {
          const auto state = static_cast<v1::Run::State>(select.Integer(0));
          if (state == v1::Run::STATE_PAUSED) continue;  // neither trains nor waits for a device
          (domain::IsActive(state) ? metrics.active_runs : metrics.queued_runs) +=
              select.Integer(1);
        }
        return select.status();
      })
      .IgnoreError();  // a database that cannot be read shows as no runs, and in the log
  metrics.watchers = parts_.hub.subscriptions();
  metrics.stalled_watchers = stalled_watchers_;
  metrics.points_stored = parts_.store.attempt_log().points_stored();
  metrics.commits = parts_.store.writer().commits();
  metrics.sequence = parts_.hub.published();
  metrics.writing_ok = parts_.store.writer().health().ok();
  metrics.log_bytes = FileBytes(StrCat(parts_.store.path().string(), "-wal"));
  metrics.free_bytes = FreeBytes(parts_.data_dir);
  metrics.slow_reads = parts_.store.slow_reads();
  metrics.uptime_seconds = std::chrono::duration<double>(parts_.clock.Now() - started_).count();
  return metrics;
}

}  // namespace normlab::app
