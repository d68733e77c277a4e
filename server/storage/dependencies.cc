#include "server/storage/dependencies.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "server/base/ids.h"
#include "server/base/strings.h"
#include "server/domain/run_state.h"

namespace normlab::storage {
namespace {

using domain::FieldViolation;

// Whether `other`, in whose state the condition `d` looks, keeps a run from starting: it has not
// ended, or it was to succeed and has not.
#define NORMLAB_UNMET "(other.state < 7 OR (d.condition = 'ok' AND other.state > 7))"
static_assert(v1::Run::STATE_SUCCEEDED == 7 && v1::Run::STATE_CANCELLING == 6 &&
              v1::Run::STATE_FAILED == 8);

// "has failed", "was cancelled"
std::string EndedWords(v1::Run::State state) {
  return StrCat(state == v1::Run::STATE_CANCELLED ? "was " : "has ", domain::StateWord(state));
}

struct Named {
  std::string name;
  v1::Run::State state;
};
absl::StatusOr<std::optional<Named>> ReadNamed(Database& database, const std::string& run) {
  Statement select = database.Prepared("SELECT display_name, state FROM runs WHERE id = ?1");
  select.Bind(1, run);
  std::optional<Named> found;
  if (select.Step()) {
    found = Named{select.Text(0), static_cast<v1::Run::State>(select.Integer(1))};
  }
  if (!select.status().ok()) return select.status();
  return found;
}

absl::StatusOr<std::vector<std::string>> ReadAfter(Database& database, const std::string& run) {
  Statement select = database.Prepared("SELECT after FROM run_dependencies WHERE run = ?1");
  select.Bind(1, run);
  std::vector<std::string> after;
  while (select.Step()) after.push_back(select.Text(0));
  if (!select.status().ok()) return select.status();
  return after;
}

absl::StatusOr<std::string> NameAndId(Database& database, const std::string& run) {
  const auto named = ReadNamed(database, run);
  if (!named.ok()) return named.status();
  return named->has_value() ? StrCat((*named)->name, " (", run, ")") : run;
}

// The way from `from` to `to` along what runs wait for, both ends included; empty if there is none.
absl::StatusOr<std::vector<std::string>> FindPath(Database& database, const std::string& from,
                                                  const std::string& to) {
  std::map<std::string, std::string> reached_from = {{from, ""}};
  std::deque<std::string> next = {from};
  while (!next.empty() && !reached_from.contains(to)) {
    const std::string run = std::move(next.front());
    next.pop_front();
    const auto after = ReadAfter(database, run);
    if (!after.ok()) return after.status();
    for (const std::string& other : *after) {
      if (reached_from.emplace(other, run).second) next.push_back(other);
    }
  }
  std::vector<std::string> path;
  if (!reached_from.contains(to)) return path;
  for (std::string run = to; !run.empty(); run = reached_from[run]) path.push_back(run);
  std::ranges::reverse(path);
  return path;
}

// What is wrong with one dependency of `id` on a run that is there; empty if nothing is.
absl::StatusOr<std::string> WhyNotAfter(Database& database, const std::string& id,
                                        const v1::Dependency& dependency, const Named& other) {
  const bool any = dependency.condition() == "any";
  if (!any && domain::IsTerminal(other.state) && other.state != v1::Run::STATE_SUCCEEDED) {
    return StrCat("run ", other.name, " (", dependency.run(), ") ", EndedWords(other.state),
                  " and is not going to succeed; retry it first, or use the condition any");
  }
  if (id.empty()) return "";
  const auto path = FindPath(database, dependency.run(), id);
  if (!path.ok() || path->empty())
    return path.ok() ? "" : absl::StatusOr<std::string>(path.status());
  std::string cycle;
  for (const std::string& run : *path) {
    const auto name = NameAndId(database, run);
    if (!name.ok()) return name.status();
    StrAppend(&cycle, *name, " after ");
  }
  const auto first = NameAndId(database, path->front());
  if (!first.ok()) return first.status();
  return StrCat("the runs would wait for each other for ever: ", cycle, *first);
}

}  // namespace

absl::StatusOr<std::map<std::string, std::vector<UnmetDependency>>> UnmetDependencies(
    Database& database) {
  Statement select = database.Prepared(
      "SELECT d.run, d.after, other.display_name, d.condition FROM runs "
      "CROSS JOIN run_dependencies AS d ON d.run = runs.id "  // from the queue, which is short
      "CROSS JOIN runs AS other ON other.id = d.after "
      "WHERE runs.state = ?1 AND " NORMLAB_UNMET " ORDER BY d.run, d.after");
  select.Bind(1, int64_t{v1::Run::STATE_QUEUED});
  std::map<std::string, std::vector<UnmetDependency>> unmet;
  while (select.Step()) {
    unmet[select.Text(0)].push_back({select.Text(1), select.Text(2), select.Text(3)});
  }
  if (!select.status().ok()) return select.status();
  return unmet;
}

absl::Status MayStart(Database& database, const v1::Run& run) {
  if (run.held()) return absl::FailedPreconditionError(StrCat("run ", run.id(), " is held"));
  Statement select = database.Prepared(
      "SELECT d.after FROM run_dependencies AS d JOIN runs AS other ON other.id = d.after "
      "WHERE d.run = ?1 AND " NORMLAB_UNMET);
  select.Bind(1, run.id());
  if (select.Step()) {
    return absl::FailedPreconditionError(
        StrCat("run ", run.id(), " waits for run ", select.Text(0)));
  }
  return select.status();
}

absl::StatusOr<std::vector<FieldViolation>> CheckDependencies(Database& database,
                                                              const std::string& id,
                                                              const std::string& prefix,
                                                              const Dependencies& after) {
  std::vector<FieldViolation> wrong;
  std::set<std::string> seen;
  for (int i = 0; i < after.size(); ++i) {
    const v1::Dependency& dependency = after[i];
    const std::string field = StrCat(prefix, "after[", i, "].");
    const auto refuse = [&](std::string_view name, std::string why) {
      wrong.push_back({StrCat(field, name), std::move(why)});
    };
    const std::string& condition = dependency.condition();
    if (!condition.empty() && condition != "ok" && condition != "any") {
      refuse("condition", StrCat("there is no condition \"", condition.substr(0, 64),
                                 "\"; use ok (it has succeeded) or any (it has ended)"));
      continue;
    }
    if (!IsUlid(dependency.run())) {
      refuse("run", dependency.run().empty()
                        ? std::string("is missing; give the id of a run")
                        : StrCat("there is no run ", dependency.run().substr(0, 64),
                                 "; give the whole id of one"));
      continue;
    }
    if (dependency.run() == id) {
      refuse("run", "a run cannot wait for itself");
      continue;
    }
    if (!seen.insert(dependency.run()).second) {
      refuse("run", StrCat("run ", dependency.run(), " is there twice; name it once"));
      continue;
    }
    const auto other = ReadNamed(database, dependency.run());
    if (!other.ok()) return other.status();
    if (!other->has_value()) {
      refuse("run", StrCat("there is no run ", dependency.run()));
      continue;
    }
    absl::StatusOr<std::string> why = WhyNotAfter(database, id, dependency, **other);
    if (!why.ok()) return why.status();
    if (!why->empty()) refuse("run", *std::move(why));
  }
  return wrong;
}

absl::Status CheckStillPossible(Database& database, const std::string& run) {
  Statement select = database.Prepared(
      "SELECT d.after, other.display_name, other.state FROM run_dependencies AS d "
      "JOIN runs AS other ON other.id = d.after "
      "WHERE d.run = ?1 AND d.condition = 'ok' AND other.state > 7 ORDER BY d.after");
  select.Bind(1, run);
  if (!select.Step()) return select.status();
  return absl::FailedPreconditionError(
      StrCat("run ", run, " was to start after the success of run ", select.Text(1), " (",
             select.Text(0), "), which ",
             EndedWords(static_cast<v1::Run::State>(select.Integer(2))), "; retry that one first"));
}

absl::Status WriteDependencies(Database& database, const std::string& run,
                               const Dependencies& after) {
  {
    Statement erase = database.Prepared("DELETE FROM run_dependencies WHERE run = ?1");
    erase.Bind(1, run);
    if (absl::Status status = erase.Run(); !status.ok()) return status;
  }
  Statement insert =
      database.Prepared("INSERT INTO run_dependencies (run, after, condition) VALUES (?1, ?2, ?3)");
  for (const v1::Dependency& dependency : after) {
    insert.Reset();
    insert.Bind(1, run);
    insert.Bind(2, dependency.run());
    insert.Bind(3, dependency.condition().empty() ? std::string_view("ok")
                                                  : std::string_view(dependency.condition()));
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadHopeless(Database& database, const v1::Run& ended) {
  std::vector<std::string> hopeless;
  if (ended.state() == v1::Run::STATE_SUCCEEDED) return hopeless;
  Statement select = database.Prepared(
      "SELECT runs.id FROM run_dependencies JOIN runs ON runs.id = run_dependencies.run "
      "WHERE after = ?1 AND condition = 'ok' AND state IN (?2, ?3) ORDER BY runs.id");
  select.Bind(1, ended.id());
  select.Bind(2, int64_t{v1::Run::STATE_QUEUED});
  select.Bind(3, int64_t{v1::Run::STATE_PAUSED});
  while (select.Step()) hopeless.push_back(select.Text(0));
  if (!select.status().ok()) return select.status();
  return hopeless;
}

std::string WhyHopeless(const v1::Run& ended) {
  return StrCat("run ", ended.display_name(), " (", ended.id(), "), after which it was to start, ",
                EndedWords(ended.state()));
}

}  // namespace normlab::storage
