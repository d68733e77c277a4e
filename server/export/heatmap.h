// A number for each pair of two settings as one self-contained SVG picture: panels of coloured
// cells, each labelled with its number, and the scale below. Colours run from dark to light evenly
// as the eye sees it, so that they keep their order in grey and for the colour-blind.
#ifndef NORMLAB_SERVER_EXPORT_HEATMAP_H_
#define NORMLAB_SERVER_EXPORT_HEATMAP_H_

#include <string>
#include <vector>

namespace normlab::exporter {

// NaN: there is none, an empty cell. Infinite: diverged, which is written into a grey one.
using HeatmapValue = double;

struct HeatmapPanel {
  std::string title;
  std::string row_title, column_title;
  std::vector<std::string> rows, columns;         // labels, top to bottom and left to right
  std::vector<std::vector<HeatmapValue>> values;  // by row
};

struct Heatmap {
  std::string title;
  std::string value_title;  // below the scale
  std::string footnote;
  std::vector<HeatmapPanel> panels;  // side by side, two in a row; one scale for all
};

// The scale is logarithmic where all numbers are above 0, else linear.
std::string HeatmapSvg(const Heatmap& heatmap);

// "#440154" at 0 to "#fde725" at 1.
std::string HeatColour(double at);

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_HEATMAP_H_
