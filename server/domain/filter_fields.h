// What filters and orders of run lists may name: one table from which parsing, SQL, completion and
// the page of the documentation are made. Pure functions; any thread.
#ifndef NORMLAB_SERVER_DOMAIN_FILTER_FIELDS_H_
#define NORMLAB_SERVER_DOMAIN_FILTER_FIELDS_H_

#include <string>
#include <string_view>
#include <vector>

namespace normlab::domain {

enum class FilterType { kText, kNumber, kTime, kSwitch, kState, kLabels };

struct FilterField {
  std::string name;
  FilterType type = FilterType::kText;
  std::string help;
  std::vector<std::string> other_names;  // taken as well
  bool is_setting = false;               // of the run's effective settings
};

// Those of runs themselves first, then every setting in the order of its declaration.
const std::vector<FilterField>& FilterFields();

// The field of that name (or other name), or nullptr. Upper case and dashes are taken as well.
const FilterField* FindFilterField(std::string_view name);

// "there is no field \"lr\"; did you mean learning_rate?"
std::string NoSuchField(std::string_view name);

// "text", "number", "time", "switch", "state", "labels".
std::string_view FilterTypeName(FilterType type);

// The table of fields in docs/filters.md.
std::string FilterFieldsToMarkdown();

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_FILTER_FIELDS_H_
