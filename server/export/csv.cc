#include "server/export/csv.h"

#include <algorithm>
#include <limits>
#include <set>

#include "server/export/number_text.h"

namespace normlab::exporter {
namespace {

constexpr size_t kPiece = 64 * 1024;
constexpr std::string_view kFormulaStarts = "=+-@'";

// A cell of text. One that a spreadsheet would take for a formula gets a ' in front, and so does
// one that begins with ', so that taking one ' away always gives the text back.
std::string Quoted(std::string_view written) {
  const bool marked = !written.empty() && kFormulaStarts.find(written[0]) != std::string_view::npos;
  std::string text(marked ? "'" : "");
  text += written;
  const bool spaces_outside = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (text.find_first_of(",\"\r\n") == std::string_view::npos && !spaces_outside) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

bool NamesCollide(const std::vector<Curve>& curves) {
  std::set<std::string_view> names;
  for (const Curve& curve : curves) {
    if (!names.insert(curve.name).second) return true;
  }
  return false;
}

// The three that every run has come first, then the others as they turn up.
std::vector<std::string> ColumnNames(const std::vector<Curve>& curves, const CsvOptions& options) {
  std::vector<std::string> names = {"loss", "gradient_norm", "learning_rate"};
  if (options.main_series_only) return names;
  std::set<std::string_view> seen(names.begin(), names.end());
  std::vector<std::string> others;
  for (const Curve& curve : curves) {
    for (const Series& series : curve.series) {
      if (seen.insert(series.name).second) others.push_back(series.name);
    }
  }
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

// Walks the series of one curve together, step by step.
class RowCursor {
 public:
  RowCursor(const Curve& curve, const std::vector<std::string>& columns) {
    for (const std::string& name : columns) series_.push_back(curve.Find(name));
    next_.assign(series_.size(), 0);
  }

  // Moves to the next step that any series has; false behind the last.
  bool Next() {
    step_ = std::numeric_limits<int64_t>::max();
    bool found = false;
    for (size_t i = 0; i < series_.size(); ++i) {
      if (!HasMore(i)) continue;
      step_ = std::min(step_, series_[i]->steps[next_[i]]);
      found = true;
    }
    return found;
  }

  int64_t step() const { return step_; }

  // The cell of column i at this step; moves that column on.
  std::string Take(size_t i) {
    if (!HasMore(i) || series_[i]->steps[next_[i]] != step_) return "";
    return NumberText(series_[i]->values[next_[i]++]);
  }

 private:
  bool HasMore(size_t i) const {
    return series_[i] != nullptr && next_[i] < series_[i]->steps.size();
  }

  std::vector<const Series*> series_;
  std::vector<size_t> next_;
  int64_t step_ = 0;
};

}  // namespace

int64_t WriteCsv(const std::vector<Curve>& curves, const CsvOptions& options,
                 const std::function<void(std::string_view)>& sink) {
  const bool with_id = NamesCollide(curves);
  const std::vector<std::string> columns = ColumnNames(curves, options);
  std::string piece = with_id ? "run,run_id,step" : "run,step";
  for (const std::string& name : columns) piece.append(",").append(Quoted(name));
  piece += "\n";
  int64_t rows = 0;
  for (const Curve& curve : curves) {
    std::string start = Quoted(curve.name) + ",";
    if (with_id) start.append(curve.run_id).append(",");
    RowCursor cursor(curve, columns);
    while (cursor.Next()) {
      piece += start + std::to_string(cursor.step());
      for (size_t i = 0; i < columns.size(); ++i) piece.append(",").append(cursor.Take(i));
      piece += "\n";
      ++rows;
      if (piece.size() >= kPiece) {
        sink(piece);
        piece.clear();
      }
    }
  }
  if (!piece.empty()) sink(piece);
  return rows;
}

}  // namespace normlab::exporter
