// The one place that writes to the terminal. Decides once whether it is one.
//
//   terminal.Print("submitted 01J…");            // a line that stays
//   terminal.ShowFrame({"● running …", …});      // lines at the bottom, redrawn in place
//   terminal.EndFrame();                         // the last frame stays as ordinary lines
//
// One thread. Lines printed while a frame is shown appear above it.
#ifndef NORMLAB_CLIENT_TERM_TERMINAL_H_
#define NORMLAB_CLIENT_TERM_TERMINAL_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client/term/style.h"

namespace normlab::client {

class Terminal {
 public:
  struct Size {
    int columns = 80;
    int rows = 24;
  };
  struct Traits {
    bool smart = false;  // a terminal that understands cursor movement: frames, tables, colour
    ColourDepth depth = ColourDepth::kNone;
    std::function<Size()> size = [] { return Size{}; };
    std::function<void(std::string_view)> out;
    std::function<void(std::string_view)> err;
  };

  // Standard output and error, looked at as NO_COLOR, COLORTERM and TERM say.
  static Traits StandardTraits();

  explicit Terminal(Traits traits);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool smart() const { return traits_.smart; }
  const Style& style() const { return style_; }
  Size size() const { return traits_.size(); }

  // One or more lines; a newline is added at the end.
  void Print(std::string_view text);
  // Exactly these bytes, for data; never while a frame is shown.
  void Write(std::string_view bytes);
  // A line on standard error.
  void PrintError(std::string_view text);

  // Replaces the frame. Lines must fit the width; those that do not fit the height are left out.
  void ShowFrame(const std::vector<std::string>& lines);
  void EndFrame();

 private:
  // Moves the cursor to the frame's first line and clears from there.
  std::string EraseFrame() const;

  Traits traits_;
  Style style_;
  std::vector<std::string> frame_;
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_TERM_TERMINAL_H_
