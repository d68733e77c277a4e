#include "client/term/style.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>

#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

struct Rgb {
  int red, green, blue;
};

Rgb Parse(std::string_view colour) {
  const auto channel = [&](size_t at) {
    return static_cast<int>(std::strtol(std::string(colour.substr(at, 2)).c_str(), nullptr, 16));
  };
  if (colour.size() != 7 || colour[0] != '#') return {128, 128, 128};
  return {channel(1), channel(3), channel(5)};
}

// The nearest of the 6 x 6 x 6 cube that 256-colour terminals have.
int CubeIndex(const Rgb& rgb) {
  static constexpr std::array<int, 6> kLevels = {0, 95, 135, 175, 215, 255};
  const auto nearest = [](int value) {
    int best = 0;
    for (int i = 1; i < 6; ++i) {
      if (std::abs(kLevels[i] - value) < std::abs(kLevels[best] - value)) best = i;
    }
    return best;
  };
  return 16 + 36 * nearest(rgb.red) + 6 * nearest(rgb.green) + nearest(rgb.blue);
}

struct StateLook {
  const char* word;
  const char* glyph;
  const char* colour;
};

StateLook LookOf(Run::State state) {
  switch (state) {
    case Run::STATE_QUEUED:
      return {"queued", "○", "#7d8590"};
    case Run::STATE_STARTING:
      return {"starting", "◌", "#2f81f7"};
    case Run::STATE_RUNNING:
      return {"running", "●", "#2f81f7"};
    case Run::STATE_PAUSING:
      return {"pausing", "⏸", "#c39a0b"};
    case Run::STATE_PAUSED:
      return {"paused", "⏸", "#c39a0b"};
    case Run::STATE_CANCELLING:
      return {"cancelling", "◼", "#7d8590"};
    case Run::STATE_SUCCEEDED:
      return {"succeeded", "✓", "#2da44e"};
    case Run::STATE_FAILED:
      return {"failed", "✕", "#e5534b"};
    case Run::STATE_CANCELLED:
      return {"cancelled", "◼", "#7d8590"};
    case Run::STATE_DIVERGED:
      return {"diverged", "⚡", "#c39a0b"};
    case Run::STATE_TIMED_OUT:
      return {"timed out", "⏱", "#e5534b"};
    default:
      return {"unknown", "?", "#7d8590"};
  }
}

}  // namespace

std::string Style::Paint(std::string_view text, std::string_view colour) const {
  if (depth_ == ColourDepth::kNone || text.empty()) return std::string(text);
  const Rgb rgb = Parse(colour);
  if (depth_ == ColourDepth::kTrue) {
    return fmt::format("\x1b[38;2;{};{};{}m{}\x1b[39m", rgb.red, rgb.green, rgb.blue, text);
  }
  return fmt::format("\x1b[38;5;{}m{}\x1b[39m", CubeIndex(rgb), text);
}

std::string Style::Bold(std::string_view text) const {
  return HasColour() ? fmt::format("\x1b[1m{}\x1b[22m", text) : std::string(text);
}

std::string Style::Dim(std::string_view text) const {
  return HasColour() ? fmt::format("\x1b[2m{}\x1b[22m", text) : std::string(text);
}

std::string StateWord(Run::State state) { return LookOf(state).word; }

std::string StateGlyph(Run::State state) { return LookOf(state).glyph; }

std::string StateText(Run::State state, const Style& style) {
  const StateLook look = LookOf(state);
  // The bolt takes two columns, the other glyphs one: the words still stand below each other.
  return style.Paint(Pad(look.glyph, 2) + look.word, look.colour);
}

bool IsTerminal(Run::State state) { return state >= Run::STATE_SUCCEEDED; }

}  // namespace normlab::client
