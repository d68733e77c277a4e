// Curves as CSV (RFC 4180): wide, one row a step.
//
//   run,step,loss,gradient_norm,learning_rate,...
//
// Numbers are the shortest text that reads back as the same double; NaN, Infinity and -Infinity
// stand for what is not finite, an empty cell for a step without that series: the words that JSON
// has here too, and that the readers of Python, R and DuckDB know. Names are written as they are.
// Where two runs share a name, a column run_id follows `run`; `attempt` comes next if asked for.
#ifndef NORMLAB_SERVER_EXPORT_CSV_H_
#define NORMLAB_SERVER_EXPORT_CSV_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/export/curve.h"

namespace normlab::exporter {

// A run's rows begin with these.
struct CsvRun {
  std::string id;
  std::string name;
};

// Writes rows as their points arrive; holds no more than a piece of about 64 KiB.
//
//   CsvWriter csv(CsvColumns({"loss", "extra"}), {.with_attempt = true}, sink);
//   csv.Write(run, 1, series);  ...  csv.Flush();
//
// Lines end in "\n", as Unix tools expect and RFC 4180's readers accept.
class CsvWriter {
 public:
  struct Options {
    bool with_id = false;
    bool with_attempt = false;
  };
  using Sink = std::function<void(std::string_view)>;

  // Writes the header. `columns` are names of series.
  CsvWriter(std::vector<std::string> columns, Options options, Sink sink);

  // One row for each step that any of the columns has. Each call brings whole steps.
  void Write(const CsvRun& run, int32_t attempt, const std::vector<Series>& series);
  void Flush();

  int64_t rows() const { return rows_; }  // below the header

 private:
  const std::vector<std::string> columns_;
  const Options options_;
  const Sink sink_;
  std::string piece_;
  int64_t rows_ = 0;
};

// Names of series in the order of their columns: the three that every run has, then the others as
// they turn up.
std::vector<std::string> CsvColumns(const std::vector<std::string>& names);

bool NamesCollide(const std::vector<CsvRun>& runs);

struct CsvOptions {
  // Only loss, gradient_norm and learning_rate, also when the curves have more series.
  bool main_series_only = false;
};

// Writes whole curves, run by run, and returns the number of rows below the header.
int64_t WriteCsv(const std::vector<Curve>& curves, const CsvOptions& options,
                 const CsvWriter::Sink& sink);

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_CSV_H_
