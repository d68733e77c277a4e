#include "server/storage/filter_sql.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "server/base/strings.h"
#include "server/storage/runs.h"

namespace normlab::storage {
namespace {

using domain::Filter;
using domain::FilterField;
using domain::FilterOperator;
using domain::FilterType;
using domain::FilterValue;

// Where a field of runs is: an expression, and its bit in runs.nan_numbers.
struct Column {
  std::string_view field;
  std::string_view sql;
  int64_t nan_bit = 0;
};
constexpr Column kColumns[] = {
    {"id", "runs.id"},
    {"name", "runs.display_name"},
    {"state", "runs.state"},
    {"user", "runs.user_name"},
    {"experiment", "(SELECT e.display_name FROM experiments AS e WHERE e.id = runs.experiment)"},
    {"notes", "runs.notes"},
    {"device", "runs.device"},
    {"created", "runs.create_time"},
    {"started", "runs.start_time"},
    {"ended", "runs.end_time"},
    {"pinned", "runs.pinned"},
    {"archived", "runs.archived"},
    {"step", "runs.step"},
    {"final_loss", "runs.final_loss", kNanFinalLoss},
    {"min_loss", "runs.min_loss"},
    {"validation_loss", "runs.validation_loss", kNanValidationLoss},
    {"final_gradient_norm", "runs.final_gradient_norm", kNanFinalGradientNorm},
    {"max_gradient_norm", "runs.max_gradient_norm"},
    {"first_bad_step", "runs.first_bad_step"},
    {"parameters", "runs.parameter_count"},
    {"run_seconds", "(SELECT sum(a.run_seconds) FROM attempts AS a WHERE a.run = runs.id)"},
};

const Column* ColumnOf(const FilterField& field) {
  for (const Column& column : kColumns) {
    if (!field.is_setting && column.field == field.name) return &column;
  }
  return nullptr;
}

std::string_view OperatorSql(FilterOperator op) {
  switch (op) {
    case FilterOperator::kNotEqual:
      return " != ";
    case FilterOperator::kLess:
      return " < ";
    case FilterOperator::kLessEqual:
      return " <= ";
    case FilterOperator::kGreater:
      return " > ";
    case FilterOperator::kGreaterEqual:
      return " >= ";
    case FilterOperator::kEqual:
    case FilterOperator::kHas:
      break;
  }
  return " = ";
}

SqlValue NumberOf(const FilterValue& value) {
  if (value.integer) return *value.integer;
  return value.number;
}

// 1 where `subject` contains the text, letters a to z alike.
Sql Contains(const Sql& subject, const std::string& text) {
  Sql sql;
  sql.Add("instr(lower(").Add(subject).Add("), lower(").Bind(text).Add(")) > 0");
  return sql;
}

// What a comparison of one text asks of `subject`; NULL where that is NULL.
Sql TextSql(const Sql& subject, FilterOperator op, const FilterValue& value) {
  if (op == FilterOperator::kHas) return Contains(subject, value.text);
  return Sql().Add(subject).Add(OperatorSql(op)).Bind(value.text);
}

// A span of time: = is within it, < before it, <= before its end, and so on.
Sql TimeSql(const Sql& subject, FilterOperator op, const FilterValue& value) {
  const auto compared = [&subject](std::string_view sign, int64_t bound) {
    return Sql().Add(subject).Add(sign).Bind(bound);
  };
  switch (op) {
    case FilterOperator::kLess:
      return compared(" < ", value.first);
    case FilterOperator::kGreaterEqual:
      return compared(" >= ", value.first);
    case FilterOperator::kLessEqual:
      return compared(" <= ", value.last);
    case FilterOperator::kGreater:
      return compared(" > ", value.last);
    default:
      break;
  }
  Sql within;
  within.Add(op == FilterOperator::kNotEqual ? "NOT (" : "(");
  return within.Add(compared(" >= ", value.first))
      .Add(" AND ")
      .Add(compared(" <= ", value.last))
      .Add(")");
}

Sql NumberSql(const FieldSql& field, FilterOperator op, const FilterValue& value) {
  Sql sql;
  if (std::isnan(value.number)) {
    if (op == FilterOperator::kEqual) return field.is_nan;
    return sql.Add(field.value).Add(" IS NOT NULL");
  }
  sql.Add(field.value).Add(OperatorSql(op)).Bind(NumberOf(value));
  if (op != FilterOperator::kNotEqual) return sql;
  return Sql().Add("(").Add(sql).Add(" OR ").Add(field.is_nan).Add(")");
}

// The comparison of a field whose value is in `field`; NULL counts as no.
Sql ValueSql(const FilterField& field, const FieldSql& sql, FilterOperator op,
             const FilterValue& value) {
  switch (field.type) {
    case FilterType::kText:
    case FilterType::kLabels:
      return TextSql(sql.value, op, value);
    case FilterType::kNumber:
      return NumberSql(sql, op, value);
    case FilterType::kTime:
      return TimeSql(sql.value, op, value);
    case FilterType::kSwitch:
      return Sql().Add(sql.value).Add(OperatorSql(op)).Bind(int64_t{value.flag});
    case FilterType::kState:
      break;
  }
  return Sql().Add(sql.value).Add(OperatorSql(op)).Bind(int64_t{value.state});
}

// Settings are looked up by name, in whose order their table is: all runs' values of one setting
// are neighbours.
Sql SettingSql(const Filter& filter) {
  Sql sql;
  sql.Add("runs.id IN (SELECT s.run FROM run_settings AS s WHERE s.name = ")
      .Bind(filter.field->name);
  if (!filter.value.any) {
    const FieldSql value{Sql{"s.value", {}}, Sql{"0", {}}};
    sql.Add(" AND ").Add(ValueSql(*filter.field, value, filter.op, filter.value));
  }
  return sql.Add(")");
}

// A run has any number of labels: != means that none is that one.
Sql LabelSql(const Filter& filter) {
  Sql sql;
  if (filter.op == FilterOperator::kNotEqual) sql.Add("NOT ");
  sql.Add("EXISTS (SELECT 1 FROM run_labels AS l WHERE l.run = runs.id");
  if (!filter.value.any) sql.Add(" AND l.label = ").Bind(filter.value.text);
  return sql.Add(")");
}

// By id or name; a run without one has the empty text.
Sql ExperimentSql(const Filter& filter) {
  const Sql name{
      "coalesce((SELECT e.display_name FROM experiments AS e WHERE e.id = "
      "runs.experiment), '')",
      {}};
  if (filter.value.any) return Sql().Add("runs.experiment IS NOT NULL");
  Sql sql;
  sql.Add(filter.op == FilterOperator::kNotEqual ? "NOT (" : "(");
  sql.Add("coalesce(runs.experiment, '') = upper(").Bind(filter.value.text).Add(") OR ");
  const bool has = filter.op == FilterOperator::kHas;
  sql.Add(TextSql(name, has ? FilterOperator::kHas : FilterOperator::kEqual, filter.value));
  return sql.Add(")");
}

Sql IdSql(const Filter& filter) {
  FilterValue upper = filter.value;
  for (char& c : upper.text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return TextSql(Sql{"runs.id", {}}, filter.op, upper);
}

Sql AnySql(const FilterField& field) {
  const FieldSql sql = SqlOf(field);
  if (field.type == FilterType::kText) return Sql().Add(sql.value).Add(" != ''");
  return Sql().Add("(").Add(sql.value).Add(" IS NOT NULL OR ").Add(sql.is_nan).Add(")");
}

Sql ComparisonSql(const Filter& filter) {
  const FilterField& field = *filter.field;
  if (field.is_setting) return SettingSql(filter);
  if (field.type == FilterType::kLabels) return LabelSql(filter);
  if (field.name == "experiment") return ExperimentSql(filter);
  if (filter.value.any) return AnySql(field);
  if (field.name == "id") return IdSql(filter);
  return Sql()
      .Add("coalesce(")
      .Add(ValueSql(field, SqlOf(field), filter.op, filter.value))
      .Add(", 0)");
}

Sql SearchSql(const std::string& text) {
  Sql sql;
  sql.Add("(").Add(Contains(Sql{"runs.display_name", {}}, text));
  sql.Add(" OR ").Add(Contains(Sql{"runs.notes", {}}, text));
  sql.Add(" OR instr(runs.id, upper(").Bind(text).Add(")) = 1");
  sql.Add(" OR EXISTS (SELECT 1 FROM run_labels AS l WHERE l.run = runs.id AND ");
  return sql.Add(Contains(Sql{"l.label", {}}, text)).Add("))");
}

Sql CombinedSql(const Filter& filter, std::string_view between) {
  Sql sql;
  sql.Add("(");
  for (size_t i = 0; i < filter.terms.size(); ++i) {
    if (i > 0) sql.Add(between);
    sql.Add(FilterSql(filter.terms[i]));
  }
  return sql.Add(")");
}

// NOT NOT is nothing: SQLite's parser has a depth.
Sql NotSql(const Filter& term) {
  if (term.kind == Filter::Kind::kNot) return FilterSql(term.terms.front());
  return Sql().Add("(NOT ").Add(FilterSql(term)).Add(")");
}

}  // namespace

Statement Sql::On(Database& database) const {
  Statement statement = database.Once(text);
  for (size_t i = 0; i < values.size(); ++i) {
    const int parameter = static_cast<int>(i) + 1;
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
            statement.Bind(parameter, std::string_view(value));
          } else {
            statement.Bind(parameter, value);
          }
        },
        values[i]);
  }
  return statement;
}

Sql FilterSql(const Filter& filter) {
  switch (filter.kind) {
    case Filter::Kind::kEverything:
      break;
    case Filter::Kind::kAnd:
      return CombinedSql(filter, " AND ");
    case Filter::Kind::kOr:
      return CombinedSql(filter, " OR ");
    case Filter::Kind::kNot:
      return NotSql(filter.terms.front());
    case Filter::Kind::kComparison:
      return ComparisonSql(filter);
    case Filter::Kind::kSearch:
      return SearchSql(filter.value.text);
  }
  return Sql{"1", {}};
}

FieldSql SqlOf(const FilterField& field) {
  FieldSql sql;
  sql.is_nan.Add("0");
  if (const Column* column = ColumnOf(field); column != nullptr) {
    sql.value.Add(column->sql);
    if (column->nan_bit != 0) {
      sql.is_nan = Sql{StrCat("(runs.nan_numbers & ", column->nan_bit, " != 0)"), {}};
    }
    return sql;
  }
  sql.value.Add("(SELECT s.value FROM run_settings AS s WHERE s.name = ")
      .Bind(field.name)
      .Add(" AND s.run = runs.id)");
  return sql;
}

}  // namespace normlab::storage
