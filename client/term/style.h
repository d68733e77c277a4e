// Colours of a terminal. What is painted stays readable without: state is a glyph and a word too.
#ifndef NORMLAB_CLIENT_TERM_STYLE_H_
#define NORMLAB_CLIENT_TERM_STYLE_H_

#include <string>
#include <string_view>

#include "normlab/v1/run.pb.h"

namespace normlab::client {

enum class ColourDepth { kNone, k256, kTrue };

class Style {
 public:
  explicit Style(ColourDepth depth) : depth_(depth) {}

  bool HasColour() const { return depth_ != ColourDepth::kNone; }

  // `text` in the colour "#2563eb". Without colours, as it is.
  std::string Paint(std::string_view text, std::string_view colour) const;
  std::string Bold(std::string_view text) const;
  std::string Dim(std::string_view text) const;

 private:
  ColourDepth depth_;
};

// "running", "timed out": the state as people read it.
std::string StateWord(normlab::v1::Run::State state);
// "●", "⚡": one character a state, the same on the dashboard.
std::string StateGlyph(normlab::v1::Run::State state);
// Glyph and word, in the state's colour.
std::string StateText(normlab::v1::Run::State state, const Style& style);

bool IsTerminal(normlab::v1::Run::State state);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_TERM_STYLE_H_
