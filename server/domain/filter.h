// Filters of run lists: a subset of AIP-160, described for people in docs/filters.md.
//
//   absl::StatusOr<Filter> filter = ParseFilter("state=RUNNING loss<0.1 \"free text\"");
//
// A text becomes a tree of comparisons whose values have been read by the type of their field; what
// does with it (storage/run_list.h) need not look at texts again. Pure functions; any thread.
#ifndef NORMLAB_SERVER_DOMAIN_FILTER_H_
#define NORMLAB_SERVER_DOMAIN_FILTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "normlab/v1/run.pb.h"
#include "server/domain/filter_fields.h"

namespace normlab::domain {

// Bounds of one filter.
inline constexpr size_t kLongestFilter = 4000;  // bytes
inline constexpr int kMostTerms = 100;          // comparisons and searches
inline constexpr int kDeepestFilter = 20;       // parentheses and NOTs inside each other

// kHas is ':': a text contains the value (upper and lower case of a to z alike), or, with
// FilterValue::any, there is a value at all.
enum class FilterOperator { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kHas };

// The value of a comparison; which member counts follows from the field's type.
struct FilterValue {
  bool any = false;                // '*', after ':' only
  std::string text;                // kText, kLabels, and of a search
  double number = 0;               // kNumber; NaN only with kEqual and kNotEqual
  std::optional<int64_t> integer;  // kNumber, when it is written as a whole number
  int64_t first = 0;               // kTime: microseconds UTC from here...
  int64_t last = 0;                // ...to here, both within: a date is a whole day
  bool flag = false;               // kSwitch
  v1::Run::State state = v1::Run::STATE_UNSPECIFIED;  // kState
};

struct Filter {
  enum class Kind { kEverything, kAnd, kOr, kNot, kComparison, kSearch };
  Kind kind = Kind::kEverything;
  std::vector<Filter> terms;           // kAnd, kOr: two or more; kNot: one
  const FilterField* field = nullptr;  // kComparison
  FilterOperator op = FilterOperator::kEqual;
  FilterValue value;
};

// INVALID_ARGUMENT names the field `filter`, says where the fault is and how to put it right.
absl::StatusOr<Filter> ParseFilter(std::string_view text);

// Whether the filter says something about the field of that name.
bool Mentions(const Filter& filter, std::string_view field);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_FILTER_H_
