// Curves as the writers of this folder take them: plain structs, filled by whoever has the data.
#ifndef NORMLAB_SERVER_EXPORT_CURVE_H_
#define NORMLAB_SERVER_EXPORT_CURVE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace normlab::exporter {

// Points of one series: steps rise, steps.size() == values.size(). A value may be NaN or infinite;
// a step that was not measured has no entry.
struct Series {
  std::string name;
  std::vector<int64_t> steps;
  std::vector<double> values;
};

// The series of one run.
struct Curve {
  std::string run_id;
  std::string name;    // the run's name, as its user wrote it
  std::string colour;  // "#2563eb"; empty takes the palette's next
  std::vector<Series> series;

  // The series of that name, or nullptr.
  const Series* Find(const std::string& series_name) const {
    for (const Series& one : series) {
      if (one.name == series_name) return &one;
    }
    return nullptr;
  }
};

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_CURVE_H_
