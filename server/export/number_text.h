// Numbers as text that reads back as the same number.
#ifndef NORMLAB_SERVER_EXPORT_NUMBER_TEXT_H_
#define NORMLAB_SERVER_EXPORT_NUMBER_TEXT_H_

#include <string>

namespace normlab::exporter {

// The shortest decimal text that reads back as `value`; "NaN", "Infinity", "-Infinity" otherwise.
std::string NumberText(double value);

// Four significant digits, for people: 0.001653, 4.212, 1.2e-7, 18432.
std::string ShortNumberText(double value);

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_NUMBER_TEXT_H_
