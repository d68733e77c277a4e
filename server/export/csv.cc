#include "server/export/csv.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

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

// Walks series together, step by step.
class RowCursor {
 public:
  RowCursor(const std::vector<Series>& series, const std::vector<std::string>& columns) {
    std::map<std::string_view, const Series*> by_name;
    for (const Series& one : series) by_name.emplace(one.name, &one);
    for (const std::string& name : columns) {
      const auto found = by_name.find(name);
      series_.push_back(found == by_name.end() ? nullptr : found->second);
    }
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

CsvWriter::CsvWriter(std::vector<std::string> columns, Options options, Sink sink)
    : columns_(std::move(columns)), options_(options), sink_(std::move(sink)) {
  piece_ = "run";
  if (options_.with_id) piece_ += ",run_id";
  if (options_.with_attempt) piece_ += ",attempt";
  piece_ += ",step";
  for (const std::string& name : columns_) piece_.append(",").append(Quoted(name));
  piece_ += "\n";
}

void CsvWriter::Write(const CsvRun& run, int32_t attempt, const std::vector<Series>& series) {
  std::string start = Quoted(run.name) + ",";
  if (options_.with_id) start.append(run.id).append(",");
  if (options_.with_attempt) start.append(std::to_string(attempt)).append(",");
  RowCursor cursor(series, columns_);
  while (cursor.Next()) {
    piece_ += start + std::to_string(cursor.step());
    for (size_t i = 0; i < columns_.size(); ++i) piece_.append(",").append(cursor.Take(i));
    piece_ += "\n";
    ++rows_;
    if (piece_.size() >= kPiece) Flush();
  }
}

void CsvWriter::Flush() {
  if (!piece_.empty()) sink_(piece_);
  piece_.clear();
}

std::vector<std::string> CsvColumns(const std::vector<std::string>& names) {
  std::vector<std::string> columns = {"loss", "gradient_norm", "learning_rate"};
  std::set<std::string> seen(columns.begin(), columns.end());
  for (const std::string& name : names) {
    if (seen.insert(name).second) columns.push_back(name);
  }
  return columns;
}

bool NamesCollide(const std::vector<CsvRun>& runs) {
  std::set<std::string_view> names;
  for (const CsvRun& run : runs) {
    if (!names.insert(run.name).second) return true;
  }
  return false;
}

int64_t WriteCsv(const std::vector<Curve>& curves, const CsvOptions& options,
                 const CsvWriter::Sink& sink) {
  std::vector<CsvRun> runs;
  std::vector<std::string> names;
  for (const Curve& curve : curves) {
    runs.push_back({curve.run_id, curve.name});
    if (options.main_series_only) continue;
    for (const Series& series : curve.series) names.push_back(series.name);
  }
  CsvWriter csv(CsvColumns(names), {.with_id = NamesCollide(runs)}, sink);
  for (size_t i = 0; i < curves.size(); ++i) csv.Write(runs[i], 1, curves[i].series);
  csv.Flush();
  return csv.rows();
}

}  // namespace normlab::exporter
