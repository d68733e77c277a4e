#include "server/storage/run_list.h"

#include <utility>

#include "server/base/strings.h"
#include "server/storage/filter_sql.h"

namespace normlab::storage {
namespace {

// What a run must be to be on any page.
Sql Condition(const RunListQuery& query) {
  Sql sql = FilterSql(query.filter);
  if (!query.archived) sql.Add(" AND runs.archived = 0");
  if (!query.experiment.empty()) sql.Add(" AND runs.experiment = ").Bind(query.experiment);
  if (!query.states.empty()) {
    uint64_t mask = 0;
    for (const v1::Run::State state : query.states) mask |= uint64_t{1} << state;
    sql.Add(" AND (").Bind(static_cast<int64_t>(mask)).Add(" & (1 << runs.state))");
  }
  return sql;
}

// SELECT of each run's id and, for each field of the order, its rank and value.
Sql Chosen(const RunListQuery& query) {
  Sql sql;
  sql.Add("SELECT runs.id AS id");
  for (size_t i = 0; i < query.order.size(); ++i) {
    const FieldSql field = SqlOf(*query.order[i].field);
    sql.Add(", CASE WHEN ").Add(field.value).Add(" IS NOT NULL THEN 0 WHEN ").Add(field.is_nan);
    sql.Add(" THEN 1 ELSE 2 END AS ").Add(StrCat("rank", i));
    sql.Add(", ").Add(field.value).Add(StrCat(" AS value", i));
  }
  return sql.Add(" FROM runs WHERE ").Add(Condition(query));
}

Sql& BindPart(Sql& sql, const RunListKey::Part& part) {
  if (const auto* integer = std::get_if<int64_t>(&part.value)) return sql.Bind(*integer);
  if (const auto* real = std::get_if<double>(&part.value)) return sql.Bind(*real);
  if (const auto* text = std::get_if<std::string>(&part.value)) return sql.Bind(*text);
  return sql.Add("NULL");
}

// Whether a run comes behind the key: in the first field where the two differ, or by its id.
Sql Behind(const RunListQuery& query, const RunListKey& key) {
  Sql sql, equal;
  sql.Add("(");
  for (size_t i = 0; i < query.order.size(); ++i) {
    const RunListKey::Part& part = key.parts[i];
    const std::string rank = StrCat("rank", i), value = StrCat("value", i);
    sql.Add("(").Add(equal).Add("(").Add(rank).Add(" > ").Bind(part.rank);
    if (part.rank == 0) {
      sql.Add(" OR (").Add(rank).Add(" = 0 AND ").Add(value);
      BindPart(sql.Add(query.order[i].falling ? " < " : " > "), part).Add(")");
    }
    sql.Add(")) OR ");
    equal.Add(rank).Add(" = ").Bind(part.rank).Add(" AND ").Add(value).Add(" IS ");
    BindPart(equal, part).Add(" AND ");
  }
  return sql.Add("(").Add(equal).Add("id < ").Bind(key.id).Add("))");
}

std::string OrderSql(const RunListQuery& query) {
  std::string sql = " ORDER BY ";
  for (size_t i = 0; i < query.order.size(); ++i) {
    StrAppend(&sql, "rank", i, ", value", i, query.order[i].falling ? " DESC, " : ", ");
  }
  return sql + "id DESC";
}

RunListKey KeyOf(const Statement& row, size_t parts) {
  RunListKey key;
  key.id = row.Text(0);
  for (size_t i = 0; i < parts; ++i) {
    const int column = static_cast<int>(1 + 2 * i);
    RunListKey::Part part;
    part.rank = row.Integer(column);
    switch (row.TypeOf(column + 1)) {
      case Statement::Type::kInteger:
        part.value = row.Integer(column + 1);
        break;
      case Statement::Type::kReal:
        part.value = row.Real(column + 1);
        break;
      case Statement::Type::kText:
        part.value = row.Text(column + 1);
        break;
      case Statement::Type::kNull:
        break;
    }
    key.parts.push_back(std::move(part));
  }
  return key;
}

}  // namespace

absl::StatusOr<RunListPage> ListRunIds(Database& database, const RunListQuery& query) {
  if (query.after && query.after->parts.size() != query.order.size()) {
    return absl::InvalidArgumentError("the key is of another order");
  }
  Sql sql;
  sql.Add("SELECT * FROM (").Add(Chosen(query)).Add(")");
  if (query.after) sql.Add(" WHERE ").Add(Behind(query, *query.after));
  sql.Add(OrderSql(query)).Add(" LIMIT ").Bind(int64_t{query.limit} + 1);
  Statement select = sql.On(database);
  RunListPage page;
  RunListKey last;
  while (select.Step()) {
    if (static_cast<int>(page.ids.size()) == query.limit) {
      page.next = std::move(last);
      break;
    }
    last = KeyOf(select, query.order.size());
    page.ids.push_back(last.id);
  }
  if (!select.status().ok()) return select.status();
  return page;
}

absl::StatusOr<int64_t> CountRuns(Database& database, const RunListQuery& query) {
  Sql sql;
  sql.Add("SELECT count(*) FROM runs WHERE ").Add(Condition(query));
  Statement select = sql.On(database);
  if (!select.Step()) return select.status();
  return select.Integer(0);
}

}  // namespace normlab::storage
