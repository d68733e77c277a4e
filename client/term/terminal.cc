#include "client/term/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "client/term/text.h"

namespace normlab::client {
namespace {

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the reader is gone; there is nobody to tell
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Terminal::Size SizeOfStdout() {
  winsize size{};
  Terminal::Size result;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    result.columns = size.ws_col;
    result.rows = std::max<int>(size.ws_row, 4);
  }
  return result;
}

ColourDepth DepthOf(bool smart) {
  if (!smart || !Variable("NO_COLOR").empty()) return ColourDepth::kNone;
  const std::string colours = Variable("COLORTERM");
  return colours == "truecolor" || colours == "24bit" ? ColourDepth::kTrue : ColourDepth::k256;
}

}  // namespace

Terminal::Traits Terminal::StandardTraits() {
  Traits traits;
  const std::string term = Variable("TERM");
  traits.smart = ::isatty(STDOUT_FILENO) == 1 && !term.empty() && term != "dumb";
  traits.depth = DepthOf(traits.smart);
  traits.size = SizeOfStdout;
  traits.out = [](std::string_view bytes) { WriteAll(STDOUT_FILENO, bytes); };
  traits.err = [](std::string_view bytes) { WriteAll(STDERR_FILENO, bytes); };
  return traits;
}

Terminal::Terminal(Traits traits) : traits_(std::move(traits)), style_(traits_.depth) {}

Terminal::~Terminal() { EndFrame(); }

std::string Terminal::EraseFrame() const {
  if (frame_.empty()) return "";
  // A terminal that became narrower has wrapped the old lines: count the rows they take now.
  const int columns = std::max(1, size().columns);
  int rows = 0;
  for (const std::string& line : frame_) {
    rows += std::max(1, (DisplayWidth(line) + columns - 1) / columns);
  }
  return fmt::format("\r\x1b[{}A\x1b[J", rows);
}

void Terminal::Print(std::string_view text) {
  std::string bytes = EraseFrame();
  bytes += text;
  bytes += '\n';
  for (const std::string& line : frame_) bytes.append(line).append("\n");
  traits_.out(bytes);
}

void Terminal::Write(std::string_view bytes) { traits_.out(bytes); }

void Terminal::PrintError(std::string_view text) {
  EndFrame();
  traits_.err(std::string(text) + "\n");
}

void Terminal::ShowFrame(const std::vector<std::string>& lines) {
  if (!traits_.smart) return;
  const size_t fitting = std::min(lines.size(), static_cast<size_t>(std::max(1, size().rows - 1)));
  // Overwrites line by line instead of clearing first: clearing flickers. Wrapping is off
  // meanwhile, so that a character wider than we think cannot break the layout.
  std::string bytes;
  const bool same_shape = frame_.size() == fitting;
  if (same_shape && !frame_.empty()) {
    const std::string erase = EraseFrame();
    bytes = erase.substr(0, erase.size() - 3);  // move only
  } else {
    bytes = EraseFrame();
  }
  bytes += "\x1b[?7l";
  frame_.assign(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(fitting));
  // Each row is cleared before it is written: after a full row the cursor still stands on its last
  // column, which clearing would then take away.
  for (const std::string& line : frame_) bytes.append("\x1b[K").append(line).append("\n");
  bytes += "\x1b[?7h\x1b[J";
  traits_.out(bytes);
}

void Terminal::EndFrame() { frame_.clear(); }

}  // namespace normlab::client
