// Filters as SQL. Whatever people write is bound as a parameter; the text of the SQL is made of the
// program's own words only.
#ifndef NORMLAB_SERVER_STORAGE_FILTER_SQL_H_
#define NORMLAB_SERVER_STORAGE_FILTER_SQL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/domain/filter.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

using SqlValue = std::variant<int64_t, double, std::string>;

// SQL with '?' for each of `values`, in their order.
struct Sql {
  std::string text;
  std::vector<SqlValue> values;

  Sql& Add(std::string_view piece) {
    text.append(piece);
    return *this;
  }
  Sql& Add(const Sql& other) {
    text.append(other.text);
    values.insert(values.end(), other.values.begin(), other.values.end());
    return *this;
  }
  // A parameter.
  Sql& Bind(SqlValue value) {
    text += '?';
    values.push_back(std::move(value));
    return *this;
  }
  // The statement, bound.
  Statement On(Database& database) const;
};

// An expression over the table `runs` that is 1 for runs that the filter names and else 0.
Sql FilterSql(const domain::Filter& filter);

// Expressions over the table `runs`: the field's value, NULL when there is none or it is NaN, and
// whether it is NaN.
struct FieldSql {
  Sql value;
  Sql is_nan;
};
FieldSql SqlOf(const domain::FilterField& field);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_FILTER_SQL_H_
