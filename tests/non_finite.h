// The numbers that are none, as tests write them.
#ifndef NORMLAB_TESTS_NON_FINITE_H_
#define NORMLAB_TESTS_NON_FINITE_H_

#include <limits>

namespace normlab {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace normlab

#endif  // NORMLAB_TESTS_NON_FINITE_H_
