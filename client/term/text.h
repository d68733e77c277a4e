// Text as a terminal shows it: width in columns, fitting, and values in the words of people.
#ifndef NORMLAB_CLIENT_TERM_TEXT_H_
#define NORMLAB_CLIENT_TERM_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::client {

// `text` without control characters and broken UTF-8: names and messages come from others, and
// what they hold must not steer the terminal.
std::string Clean(std::string_view text);

// Columns that clean text takes; escape sequences for colour count as nothing.
int DisplayWidth(std::string_view text);

enum class Align { kLeft, kRight };

// Clean, unpainted text cut (with an ellipsis) or padded to exactly `width` columns.
std::string Fit(std::string_view text, int width, Align align = Align::kLeft);

// `text`, which may hold colours, padded to at least `width` columns.
std::string Pad(std::string_view text, int width, Align align = Align::kLeft);

// Clean, unpainted text in lines of at most `width` columns, broken at spaces; those after the
// first are indented by two. A width of 0 means one line.
std::vector<std::string> Wrap(std::string_view text, int width);

// "0.4 s", "12 s", "4 min 12 s", "3 h 5 min", "2 d 4 h".
std::string DurationText(double seconds);

// "96 KiB", "139 GiB".
std::string BytesText(int64_t bytes);

// 1234567 as "1,234,567".
std::string CountText(int64_t count);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_TERM_TEXT_H_
