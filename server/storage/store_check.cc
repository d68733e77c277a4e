#include "server/storage/store_check.h"

#include <string_view>

#include "server/storage/levels.h"

namespace normlab::storage {
namespace {

// A query without rows when all is well; else each row is a sentence.
struct Rule {
  std::string_view faults;
};

constexpr Rule kRules[] = {
    {"SELECT 'the page structure: ' || integrity_check FROM pragma_integrity_check(20) "
     "WHERE integrity_check <> 'ok'"},
    {"SELECT 'a row of ' || \"table\" || ' refers to one of ' || parent || ' that is missing' "
     "FROM pragma_foreign_key_check LIMIT 20"},
    {"SELECT 'series ' || series || ' has points and is not known' FROM "
     "(SELECT DISTINCT series FROM points) "
     "WHERE series NOT IN (SELECT id FROM series) AND series NOT IN (SELECT series FROM garbage) "
     "LIMIT 20"},
    {"SELECT 'run ' || attempts.run || ', attempt ' || attempts.number || ', series ' || "
     "series.name || ': its points end at step ' || latest || ', behind the attempt, which is at ' "
     "|| attempts.last_step FROM (SELECT id, attempt, name, "
     "(SELECT max(step) FROM points WHERE points.series = series.id) AS latest FROM series) "
     "AS series JOIN attempts ON attempts.id = series.attempt WHERE latest > attempts.last_step "
     "LIMIT 20"},
    {"SELECT 'run ' || attempts.run || ', attempt ' || attempts.number || ': its journal ends at "
     "step ' || max(journal.last_step) || ', behind the attempt, which is at ' || "
     "attempts.last_step FROM journal JOIN attempts ON attempts.id = journal.attempt "
     "GROUP BY journal.attempt HAVING max(journal.last_step) > attempts.last_step LIMIT 20"},
    {"SELECT 'run ' || id || ' was changed by write ' || changed_sequence || ', which is yet to "
     "come: the latest is ' || meta.value FROM runs JOIN meta ON meta.name = 'sequence' "
     "WHERE changed_sequence > meta.value LIMIT 20"},
};

// Makes the levels once more, from the points, and takes them back.
absl::Status CheckLevels(Database& copy, std::vector<std::string>& faults) {
  Transaction transaction(copy, Transaction::Kind::kWrite);
  if (!transaction.status().ok()) return transaction.status();
  absl::Status status = copy.Execute(
      "CREATE TEMP TABLE kept AS SELECT * FROM levels WHERE series IN (SELECT id FROM series);"
      "DELETE FROM levels");
  if (status.ok()) status = BuildLevels(copy);
  if (!status.ok()) return status;
  Statement select = copy.Prepared(
      "SELECT 'series ' || series || ': ' || count(*) || ' blocks of its levels are not those of "
      "its points, the first one from step ' || min(first_step) FROM "
      "(SELECT * FROM (SELECT * FROM levels EXCEPT SELECT * FROM kept) UNION ALL "
      "SELECT * FROM (SELECT * FROM kept EXCEPT SELECT * FROM levels)) GROUP BY series LIMIT 20");
  while (select.Step()) faults.push_back(select.Text(0));
  return select.status();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckStore(Database& copy) {
  std::vector<std::string> faults;
  for (const Rule& rule : kRules) {
    Statement select = copy.Prepared(rule.faults);
    while (select.Step()) faults.push_back(select.Text(0));
    if (absl::IsDataLoss(select.status())) {
      faults.push_back(std::string(select.status().message()));
    } else if (!select.status().ok()) {
      return select.status();
    }
  }
  if (!faults.empty()) return faults;  // what is wrong above is the cause of what would be below
  if (absl::Status status = CheckLevels(copy, faults); !status.ok()) return status;
  return faults;
}

}  // namespace normlab::storage
