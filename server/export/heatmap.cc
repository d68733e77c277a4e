#include "server/export/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "server/export/number_text.h"
#include "server/export/svg_parts.h"

namespace normlab::exporter {
namespace {

constexpr double kMargin = 24;
constexpr double kHeader = 56;     // the picture's heading
constexpr double kRowLabels = 84;  // room left of the cells
constexpr double kPanelTop = 26;   // room above the cells, for the panel's title
constexpr double kPanelFoot = 52;  // room below, for the columns' labels
constexpr double kCellWidth = 82, kCellHeight = 34;
constexpr double kGap = 36;
constexpr double kScaleWidth = 320, kScaleHeight = 12, kScaleRoom = 64;
constexpr size_t kPanelsInRow = 2;
constexpr size_t kLabelShown = 12;

struct Rgb {
  double red, green, blue;
};

// Matplotlib's viridis at five places; straight lines between them stay within 4 % of it.
constexpr std::array<Rgb, 5> kScale = {
    {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};

Rgb ColourAt(double at) {
  const double place = std::clamp(at, 0.0, 1.0) * (kScale.size() - 1);
  const size_t below = std::min(kScale.size() - 2, static_cast<size_t>(place));
  const double share = place - static_cast<double>(below);
  const Rgb &low = kScale[below], &high = kScale[below + 1];
  return {low.red + share * (high.red - low.red), low.green + share * (high.green - low.green),
          low.blue + share * (high.blue - low.blue)};
}

std::string Hex(const Rgb& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(colour.red), std::lround(colour.green),
                     std::lround(colour.blue));
}

// What is read better on the colour (W3C: relative luminance).
const char* InkOn(const Rgb& colour) {
  const auto linear = [](double channel) {
    const double share = channel / 255;
    return share <= .04045 ? share / 12.92 : std::pow((share + .055) / 1.055, 2.4);
  };
  const double luminance =
      .2126 * linear(colour.red) + .7152 * linear(colour.green) + .0722 * linear(colour.blue);
  return luminance > .18 ? "#1b1f24" : "#ffffff";
}

// Where numbers stand between the smallest and the largest of all panels.
class Scale {
 public:
  explicit Scale(const Heatmap& heatmap) {
    for (const HeatmapPanel& panel : heatmap.panels) {
      for (const auto& row : panel.values) {
        for (const double value : row) Include(value);
      }
    }
    logarithmic_ = low_ > 0;
  }

  bool empty() const { return !seen_; }
  double At(double value) const {
    if (low_ == high_) return .5;
    if (!logarithmic_) return (value - low_) / (high_ - low_);
    return std::log(value / low_) / std::log(high_ / low_);
  }
  double ValueAt(double at) const {
    if (!logarithmic_) return low_ + at * (high_ - low_);
    return low_ * std::pow(high_ / low_, at);
  }

 private:
  void Include(double value) {
    if (!std::isfinite(value)) return;
    low_ = seen_ ? std::min(low_, value) : value;
    high_ = seen_ ? std::max(high_, value) : value;
    seen_ = true;
  }

  bool seen_ = false, logarithmic_ = false;
  double low_ = 0, high_ = 0;
};

std::string CellText(double x, double y, const std::string& ink, const std::string& text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\" "
      "style=\"fill:{};text-anchor:middle\">{}</text>\n",
      x + kCellWidth / 2, y + kCellHeight / 2 + 4.5, ink, ink, XmlText(text));
}

std::string Cell(double x, double y, double value, const Scale& scale) {
  const auto box = [&](const std::string& fill) {
    return fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
        "stroke=\"#fff\"/>\n",
        x, y, kCellWidth, kCellHeight, fill);
  };
  if (std::isnan(value)) return box("#f6f8fa") + CellText(x, y, "#57606a", "none");
  if (std::isinf(value)) return box("#d0d7de") + CellText(x, y, "#1b1f24", "diverged");
  const Rgb colour = ColourAt(scale.At(value));
  return box(Hex(colour)) + CellText(x, y, InkOn(colour), ShortNumberText(value));
}

double WidthOf(const HeatmapPanel& panel) {
  return kRowLabels + kCellWidth * static_cast<double>(panel.columns.size());
}
double HeightOf(const HeatmapPanel& panel) {
  return kPanelTop + kCellHeight * static_cast<double>(panel.rows.size()) + kPanelFoot;
}

std::string Panel(const HeatmapPanel& panel, double left, double top, const Scale& scale) {
  const double x0 = left + kRowLabels, y0 = top + kPanelTop;
  std::string drawn = SvgText(x0, top + 14, "title", panel.title);
  drawn += SvgText(x0 - 8, top + 14, "ylabel", panel.row_title);
  for (size_t r = 0; r < panel.rows.size(); ++r) {
    const double y = y0 + kCellHeight * static_cast<double>(r);
    drawn +=
        SvgText(x0 - 8, y + kCellHeight / 2 + 4, "ylabel", Shortened(panel.rows[r], kLabelShown));
    for (size_t c = 0; c < panel.columns.size(); ++c) {
      drawn += Cell(x0 + kCellWidth * static_cast<double>(c), y, panel.values[r][c], scale);
    }
  }
  const double bottom = y0 + kCellHeight * static_cast<double>(panel.rows.size());
  for (size_t c = 0; c < panel.columns.size(); ++c) {
    drawn += SvgText(x0 + kCellWidth * (static_cast<double>(c) + .5), bottom + 18, "xlabel",
                     Shortened(panel.columns[c], kLabelShown));
  }
  const double middle = x0 + kCellWidth * static_cast<double>(panel.columns.size()) / 2;
  return drawn + SvgText(middle, bottom + 38, "xlabel", panel.column_title);
}

std::string ScaleBar(const Scale& scale, const std::string& title, double left, double top) {
  if (scale.empty()) return SvgText(left, top + 12, "foot", "no values");
  constexpr int kSteps = 64;
  std::string bar;
  for (int i = 0; i < kSteps; ++i) {
    // A little wider than its step, so that no gap shows between two.
    bar += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
        left + kScaleWidth * i / kSteps, top, kScaleWidth / kSteps + .5, kScaleHeight,
        HeatColour((i + .5) / kSteps));
  }
  for (const double at : {0.0, .5, 1.0}) {
    bar += SvgText(left + kScaleWidth * at, top + kScaleHeight + 16, "xlabel",
                   ShortNumberText(scale.ValueAt(at)));
  }
  return bar + SvgText(left + kScaleWidth + 16, top + kScaleHeight - 1, "foot", title);
}

}  // namespace

std::string HeatColour(double at) { return Hex(ColourAt(at)); }

std::string HeatmapSvg(const Heatmap& heatmap) {
  const Scale scale(heatmap);
  std::string body = SvgText(kMargin, 32, "heading", heatmap.title);
  double width = kMargin + kScaleWidth + 240, top = kHeader;
  for (size_t first = 0; first < heatmap.panels.size(); first += kPanelsInRow) {
    double left = kMargin, height = 0;
    for (size_t i = first; i < std::min(first + kPanelsInRow, heatmap.panels.size()); ++i) {
      const HeatmapPanel& panel = heatmap.panels[i];
      body += Panel(panel, left, top, scale);
      left += WidthOf(panel) + kGap;
      height = std::max(height, HeightOf(panel));
    }
    width = std::max(width, left - kGap + kMargin);
    top += height;
  }
  body += ScaleBar(scale, heatmap.value_title, kMargin + kRowLabels, top + 4);
  top += kScaleRoom;
  body += SvgText(kMargin, top, "foot", heatmap.footnote);
  return SvgDocument(width, top + 16, heatmap.title, body);
}

}  // namespace normlab::exporter
