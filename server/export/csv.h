// Curves as CSV (RFC 4180): wide, one row a step, one block of rows a run.
//
//   run,step,loss,gradient_norm,learning_rate,...
//
// Numbers are the shortest text that reads back as the same double; NaN, Infinity and -Infinity
// stand for what is not finite, an empty cell for a step without that series. Names are written as
// they are. Where two curves share a name, a column run_id follows `run`.
#ifndef NORMLAB_SERVER_EXPORT_CSV_H_
#define NORMLAB_SERVER_EXPORT_CSV_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/export/curve.h"

namespace normlab::exporter {

struct CsvOptions {
  // Only loss, gradient_norm and learning_rate, also when the curves have more series.
  bool main_series_only = false;
};

// Writes the curves in pieces of at most about 64 KiB and returns the number of rows below the
// header. Lines end in "\n", as Unix tools expect and RFC 4180's readers accept.
int64_t WriteCsv(const std::vector<Curve>& curves, const CsvOptions& options,
                 const std::function<void(std::string_view)>& sink);

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_CSV_H_
