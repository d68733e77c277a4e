// Curves as one self-contained SVG picture: loss on the left, gradient norm on the right, both on
// logarithmic axes, a legend with final values below.
//
// A panel draws at most a few points a pixel: the first, smallest, largest and last of each column
// are kept, so that a spike at one step in a million is drawn and the file stays small. Points that
// are not finite break the line and are marked on the step axis.
#ifndef NORMLAB_SERVER_EXPORT_SVG_PLOT_H_
#define NORMLAB_SERVER_EXPORT_SVG_PLOT_H_

#include <string>
#include <string_view>
#include <vector>

#include "server/export/curve.h"

namespace normlab::exporter {

struct SvgOptions {
  std::string title = "";     // above the picture; empty for none
  std::string footnote = "";  // below the legend; empty for none
};

std::string PlotSvg(const std::vector<Curve>& curves, const SvgOptions& options);

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_SVG_PLOT_H_
