// Values of filters, read by the type of their field.
#ifndef NORMLAB_SERVER_DOMAIN_FILTER_VALUES_H_
#define NORMLAB_SERVER_DOMAIN_FILTER_VALUES_H_

#include <optional>
#include <string>
#include <string_view>

#include "normlab/v1/run.pb.h"
#include "server/domain/filter.h"

namespace normlab::domain {

// Reads `text` into `value`. "" when it is one, else what is wrong and what would be right.
std::string ReadFilterValue(const FilterField& field, std::string_view text, FilterValue& value);

// "running", "STATE_RUNNING", "timed-out": any spelling of a state, or nothing.
std::optional<v1::Run::State> ParseStateName(std::string_view text);

// "2026-11-30" (a whole day, UTC), "2026-11-30T12:00:00Z", "2026-11-30T12:00:00.25+01:00": the
// microseconds that it stands for, first and last. False when it is none of these.
bool ParseTimeSpan(std::string_view text, int64_t& first, int64_t& last);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_FILTER_VALUES_H_
