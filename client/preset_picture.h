// The picture that fits a preset's table: the number over depth, the stream over blocks, losses over
// two settings as a heatmap, or losses over steps with the seeds as a band.
#ifndef NORMLAB_CLIENT_PRESET_PICTURE_H_
#define NORMLAB_CLIENT_PRESET_PICTURE_H_

#include <string>
#include <vector>

#include "client/preset_table.h"
#include "normlab/v1/experiment_service.pb.h"
#include "server/export/curve.h"

namespace normlab::client {

// An SVG document. `curves` and `cells` are of the same `runs`.
std::string PresetPicture(const normlab::v1::Preset& preset,
                          const std::vector<normlab::v1::Run>& runs,
                          const std::vector<exporter::Curve>& curves, const PresetCells& cells,
                          const std::string& footnote);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PRESET_PICTURE_H_
