// The part of the api by which people say something about runs, and take them away.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/app/audit_lines.h"
#include "server/app/requests.h"
#include "server/app/server_api.h"
#include "server/app/submit_checks.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/priority.h"
#include "server/domain/run_words.h"
#include "server/domain/spec.h"
#include "server/storage/queue_changes.h"
#include "server/storage/run_deletion.h"
#include "server/storage/run_description.h"
#include "server/storage/run_list.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using domain::FieldViolation;

constexpr int kPruneBatch = 20;   // runs a transaction
constexpr int kPruneShown = 100;  // ids in an answer
constexpr int kPrunePage = 1000;  // runs a read

// The fields that a request changes: those of its mask, or those that are set.
std::vector<std::string> FieldsOf(const v1::UpdateRunRequest& request) {
  const auto& paths = request.update_mask().paths();
  if (!paths.empty()) return {paths.begin(), paths.end()};
  const v1::Run& run = request.run();
  std::vector<std::string> fields;
  if (!run.display_name().empty()) fields.push_back("display_name");
  if (run.labels_size() > 0) fields.push_back("labels");
  if (!run.notes().empty()) fields.push_back("notes");
  if (run.pinned()) fields.push_back("pinned");
  if (run.archived()) fields.push_back("archived");
  if (!run.priority().empty()) fields.push_back("priority");
  if (run.after_size() > 0) fields.push_back("after");
  return fields;
}

// Takes one field over from the request, or notes what is wrong with it.
void Describe(const std::string& field, const v1::Run& run, storage::RunDescription& words,
              std::vector<FieldViolation>& wrong) {
  std::vector<FieldViolation> found;
  if (field == "display_name") {
    found = domain::CheckDisplayName("display_name", run.display_name());
    words.display_name = run.display_name();
  } else if (field == "labels") {
    words.labels.emplace(run.labels().begin(), run.labels().end());
    found = domain::CheckLabels("labels", *words.labels);
  } else if (field == "notes") {
    found = domain::CheckNotes("notes", run.notes());
    words.notes = run.notes();
  } else if (field == "pinned") {
    words.pinned = run.pinned();
  } else if (field == "archived") {
    words.archived = run.archived();
  } else {
    found = {{"update_mask", StrCat("\"", field.substr(0, 64),
                                    "\" cannot be changed; display_name, labels, notes, "
                                    "pinned, archived, priority and after can")}};
  }
  wrong.insert(wrong.end(), found.begin(), found.end());
}

int32_t AttemptsOf(const v1::Run& run) {
  return run.attempts().empty() ? 0 : run.attempts(run.attempts_size() - 1).number();
}

// Written before the run goes, while the database knows whose it is.
storage::AuditLine DeletionLine(const v1::Run& run) {
  return {"delete", run.id(), run.experiment(), StrCat("\"", run.display_name(), "\"")};
}

}  // namespace

absl::StatusOr<v1::Run> ServerApi::UpdateRun(const Principal& principal,
                                             const v1::UpdateRunRequest& request) {
  const std::string& id = request.run().id();
  if (absl::Status status = CheckId("id", id); !status.ok()) return status;
  if (absl::Status status = CheckOwner(principal, id); !status.ok()) return status;
  storage::RunDescription words;
  std::vector<FieldViolation> wrong;
  const std::vector<std::string> fields = FieldsOf(request);
  if (fields.empty()) wrong.push_back({"update_mask", "names nothing to change"});
  storage::QueueChange queue;
  for (const std::string& field : fields) {
    if (field == "priority") {
      const std::string& priority = request.run().priority();
      if (auto may = MayGive(principal, field, priority); !may.ok()) return may;
      for (FieldViolation& violation : CheckPriority(field, priority)) {
        wrong.push_back(std::move(violation));
      }
      queue.priority = domain::PriorityNumber(priority);
    } else if (field == "after") {
      queue.after = request.run().after();
    } else {
      Describe(field, request.run(), words, wrong);
    }
  }
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  absl::StatusOr<v1::Run> changed;
  absl::Status status = parts_.store.writer().Write([&](storage::WriteContext& context) {
    const absl::StatusOr<v1::Run> before = storage::ReadRun(context.database, id);
    if (!before.ok()) return before.status();
    absl::Status written;
    if (!queue.empty()) written = storage::ChangeQueued(context, id, queue);
    if (written.ok() && !words.empty()) written = storage::DescribeRun(context, id, words);
    if (!written.ok()) return written;
    changed = storage::ReadRun(context.database, id);
    if (!changed.ok()) return changed.status();
    const storage::AuditLine line = DescriptionLine(*before, *changed);
    if (line.detail.empty()) return absl::OkStatus();
    return storage::WriteAudit(context, principal.actor(), line);
  });
  if (!status.ok()) return status;
  if (!queue.empty()) parts_.dispatcher.Wake();
  Complete(*changed);
  return changed;
}

absl::Status ServerApi::DeleteRun(const Principal& principal, const v1::DeleteRunRequest& request) {
  if (absl::Status status = CheckId("id", request.id()); !status.ok()) return status;
  if (absl::Status status = CheckOwner(principal, request.id()); !status.ok()) return status;
  int32_t attempts = 0;
  absl::Status status = parts_.store.writer().Write([&](storage::WriteContext& context) {
    const absl::StatusOr<v1::Run> run = storage::ReadRun(context.database, request.id());
    if (!run.ok()) return run.status();
    attempts = AttemptsOf(*run);
    const absl::Status noted = storage::WriteAudit(context, principal.actor(), DeletionLine(*run));
    if (!noted.ok()) return noted;
    return storage::DeleteRun(context, request.id());
  });
  if (!status.ok()) return status;
  LogInfo("run deleted", {{"run", request.id()}, {"by", principal.user}});
  parts_.sweep.Start();
  // The run is gone, whatever becomes of its files.
  if (absl::Status removed = parts_.files.Remove(request.id(), attempts); !removed.ok()) {
    LogWarning("files of a deleted run are still there",
               {{"run", request.id()}, {"why", std::string(removed.message())}});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Run>> ServerApi::PrunableOf(const Principal& principal,
                                                           const v1::PruneRunsRequest& request,
                                                           const std::vector<std::string>& ids,
                                                           v1::PruneRunsResponse& response) {
  std::vector<v1::Run> runs;
  for (const std::string& id : ids) {
    absl::StatusOr<v1::Run> run;
    int64_t points = 0;
    // Each in a read of its own, which the counting of a long curve keeps busy for a while.
    absl::Status status = parts_.store.Read([&](storage::Database& database) -> absl::Status {
      run = storage::ReadRun(database, id);
      if (!run.ok()) return absl::IsNotFound(run.status()) ? absl::OkStatus() : run.status();
      if (request.checkpoints_only() || !storage::MayDelete(*run).ok()) return absl::OkStatus();
      const absl::StatusOr<int64_t> counted = storage::CountPoints(database, id);
      if (counted.ok()) points = *counted;
      return counted.status();
    });
    if (!status.ok()) return status;
    if (!run.ok()) continue;  // deleted meanwhile
    const bool own = principal.role == "admin" || run->user() == principal.user;
    if (!own || !storage::MayDelete(*run).ok()) {
      response.set_kept(response.kept() + 1);
      continue;
    }
    const int64_t bytes = request.checkpoints_only() ? parts_.files.CheckpointBytes(id)
                                                     : parts_.files.Bytes(id, AttemptsOf(*run));
    if (request.checkpoints_only() && bytes == 0) continue;
    response.set_runs(response.runs() + 1);
    response.set_points(response.points() + points);
    response.set_file_bytes(response.file_bytes() + bytes);
    if (response.ids_size() < kPruneShown) response.add_ids(id);
    runs.push_back(*std::move(run));
  }
  return runs;
}

absl::Status ServerApi::Prune(const domain::Actor& who, const v1::PruneRunsRequest& request,
                              const std::vector<v1::Run>& runs) {
  std::vector<const v1::Run*> done;
  absl::Status status = parts_.store.writer().Write([&](storage::WriteContext& context) {
    for (const v1::Run& run : runs) {
      const absl::Status one = request.checkpoints_only()
                                   ? storage::ForgetCheckpoints(context, run.id())
                                   : storage::DeleteRun(context, run.id());
      // Pinned, tried again or deleted since it was looked at; nothing of it was written.
      if (absl::IsFailedPrecondition(one) || absl::IsNotFound(one)) continue;
      if (!one.ok()) return one;
      storage::AuditLine line = DeletionLine(run);
      if (request.checkpoints_only()) line.action = "delete checkpoints";
      line.owner = run.user();  // the run is gone by now
      StrAppend(&line.detail, ", by: ", request.filter());
      if (auto noted = storage::WriteAudit(context, who, line); !noted.ok()) return noted;
      done.push_back(&run);
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  parts_.sweep.Start();
  for (const v1::Run* run : done) {
    const absl::Status removed = request.checkpoints_only()
                                     ? parts_.files.RemoveCheckpoints(run->id())
                                     : parts_.files.Remove(run->id(), AttemptsOf(*run));
    if (!removed.ok()) {
      LogWarning("files of a pruned run are still there",
                 {{"run", run->id()}, {"why", std::string(removed.message())}});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::PruneRunsResponse> ServerApi::PruneRuns(const Principal& principal,
                                                           const v1::PruneRunsRequest& request) {
  if (absl::Status status = MayChange(principal); !status.ok()) return status;
  const absl::StatusOr<domain::Filter> filter = domain::ParseFilter(request.filter());
  if (!filter.ok()) return filter.status();
  if (filter->kind == domain::Filter::Kind::kEverything) {
    return domain::InvalidFields({{"filter", "is empty; say which runs, or id:* for all"}});
  }
  storage::RunListQuery query;
  query.filter = *filter;
  query.archived = domain::Mentions(*filter, "archived");
  query.limit = kPrunePage;
  v1::PruneRunsResponse response;
  do {
    storage::RunListPage page;
    absl::Status status = parts_.store.Read([&](storage::Database& database) {
      absl::StatusOr<storage::RunListPage> read = storage::ListRunIds(database, query);
      if (read.ok()) page = *std::move(read);
      return read.status();
    });
    if (!status.ok()) return status;
    query.after = page.next;
    for (size_t begin = 0; begin < page.ids.size(); begin += kPruneBatch) {
      const size_t end = std::min(page.ids.size(), begin + kPruneBatch);
      const auto first = page.ids.begin();
      const absl::StatusOr<std::vector<v1::Run>> runs = PrunableOf(
          principal, request,
          {first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end)}, response);
      if (!runs.ok()) return runs.status();
      if (request.validate_only()) continue;
      if (status = Prune(principal.actor(), request, *runs); !status.ok()) return status;
    }
  } while (query.after);
  LogInfo(request.validate_only() ? "runs looked at for pruning" : "runs pruned",
          {{"by", principal.user},
           {"filter", request.filter()},
           {"runs", StrCat(response.runs())},
           {"points", StrCat(response.points())}});
  return response;
}

}  // namespace normlab::app
