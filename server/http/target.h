// A request's target: "/api/v1/runs/01J8:cancel?max_points=5" taken apart.
//
//   absl::StatusOr<Target> target = ParseTarget(request.target());
//   Query query(target->parameters);
//   request.set_max_points(query.Int32("max_points"));
//   if (absl::Status status = query.Done(); !status.ok()) return status;   // names every fault
#ifndef NORMLAB_SERVER_HTTP_TARGET_H_
#define NORMLAB_SERVER_HTTP_TARGET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/domain/violations.h"

namespace normlab::http {

using Parameters = std::vector<std::pair<std::string, std::string>>;

struct Target {
  // The path, decoded; only for what is looked up whole (files).
  std::string path;
  // The path's segments, decoded, without the verb: {"api", "v1", "runs", "01J8"}.
  std::vector<std::string> segments;
  // What stands after a ':' in the last segment, which must be written as such: an encoded %3A is
  // part of the name.
  std::string verb;
  // The query, decoded, in its order.
  Parameters parameters;
};

// INVALID_ARGUMENT unless `target` is a path whose escapes are well-formed and whose text is UTF-8
// without control characters.
absl::StatusOr<Target> ParseTarget(std::string_view target);

// Reads a query by name. Both spellings of a name are taken (max_points, maxPoints); a name that
// was never asked for, one given twice and a value of the wrong type are faults.
class Query {
 public:
  explicit Query(const Parameters& parameters) : parameters_(parameters) {}

  std::string Text(std::string_view name);
  // Comma-separated, and may be given repeatedly.
  std::vector<std::string> List(std::string_view name);
  int32_t Int32(std::string_view name);
  int64_t Int64(std::string_view name);
  // true, false, 1, 0; present without a value is true.
  bool Bool(std::string_view name);

  void Fault(std::string_view name, std::string description);
  // OK, or every fault at once.
  absl::Status Done();

 private:
  // The values given for `name`, which becomes a known one.
  std::vector<std::string> Values(std::string_view name);
  template <typename Integer>
  Integer Number(std::string_view name);

  const Parameters& parameters_;
  std::vector<std::string> known_;
  std::vector<domain::FieldViolation> faults_;
};

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_TARGET_H_
