// Specs as a user gives them, and a machine to check them on.
#ifndef NORMLAB_TESTS_UNIT_DOMAIN_SPECS_H_
#define NORMLAB_TESTS_UNIT_DOMAIN_SPECS_H_

#include <initializer_list>
#include <utility>

#include "gtest/gtest.h"
#include "server/domain/settings.h"
#include "server/domain/spec.h"

namespace normlab::domain {

inline constexpr MachineLimits kMachine = {2, int64_t{8} << 30};

// A run with these settings, each by its name and text.
inline v1::RunSpec Spec(std::initializer_list<std::pair<const char*, const char*>> settings) {
  v1::RunSpec spec;
  for (const auto& [name, value] : settings) {
    const absl::Status status = SetFromText(spec, name, value);
    EXPECT_TRUE(status.ok()) << status;
  }
  return spec;
}

}  // namespace normlab::domain

#endif  // NORMLAB_TESTS_UNIT_DOMAIN_SPECS_H_
