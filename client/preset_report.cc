#include "client/preset_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "client/output_file.h"
#include "client/term/table.h"
#include "server/domain/settings.h"
#include "server/export/csv.h"
#include "server/export/number_text.h"
#include "server/export/palette.h"
#include "server/export/svg_plot.h"

namespace normlab::client {
namespace {

using normlab::v1::ExperimentService;
using normlab::v1::Preset;
using normlab::v1::PresetRun;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Measured {
  bool has_points = false;
  double final_loss = kNone;
  double max_gradient_norm = kNone;
};

// From the points themselves, so that table and CSV cannot differ.
Measured MeasuredOf(const exporter::Curve& curve) {
  Measured measured;
  if (const exporter::Series* loss = curve.Find("loss"); loss && !loss->values.empty()) {
    measured.has_points = true;
    measured.final_loss = loss->values.back();
  }
  if (const exporter::Series* norm = curve.Find("gradient_norm"); norm) {
    for (const double value : norm->values) {
      if (std::isnan(measured.max_gradient_norm) || value > measured.max_gradient_norm) {
        measured.max_gradient_norm = value;
      }
    }
  }
  return measured;
}

const PresetRun* PresetRunAt(const Preset& preset, size_t index) {
  return index < static_cast<size_t>(preset.runs_size()) ? &preset.runs(static_cast<int>(index))
                                                         : nullptr;
}

std::string PublishedText(const PresetRun* run, double value) {
  return run != nullptr && run->has_published() ? exporter::ShortNumberText(value) : "";
}

Table ReportTable(const PresetReport& report) {
  Table table({{"run", Align::kLeft, /*shrinks=*/true},
               {"state"},
               {"final loss", Align::kRight},
               {"published", Align::kRight},
               {"max grad norm", Align::kRight},
               {"published", Align::kRight}});
  for (size_t i = 0; i < report.runs.size() && i < report.curves.size(); ++i) {
    const Measured measured = MeasuredOf(report.curves[i]);
    const PresetRun* published = PresetRunAt(report.preset, i);
    const auto number = [&](double value) {
      return measured.has_points ? exporter::ShortNumberText(value) : "";
    };
    const auto state = report.runs[i].state();
    table.Add(
        {{Clean(report.runs[i].display_name()), exporter::CurveColour(report.curves[i].colour, i)},
         {StateGlyph(state) + " " + StateWord(state)},
         {number(measured.final_loss)},
         {PublishedText(published, published ? published->published().final_loss() : 0)},
         {number(measured.max_gradient_norm)},
         {PublishedText(published, published ? published->published().max_gradient_norm() : 0)}});
  }
  return table;
}

void PrintWrapped(const std::string& text, Terminal& terminal) {
  const int width = terminal.smart() ? terminal.size().columns : 0;
  for (const std::string& line : Wrap(text, width)) terminal.Print(terminal.style().Dim(line));
}

void PrintBands(const PresetReport& report, Terminal& terminal) {
  if (!report.changed_settings.empty()) {
    PrintWrapped(fmt::format("The published figures are for the preset's own settings; these runs "
                             "have {}.",
                             report.changed_settings),
                 terminal);
    return;
  }
  for (const PresetRun& run : report.preset.runs()) {
    if (run.band().empty()) continue;
    PrintWrapped(fmt::format("{}: {}", Clean(run.display_name()), Clean(run.band())), terminal);
  }
  if (!report.preset.source().empty()) {
    PrintWrapped("Published: " + Clean(report.preset.source()), terminal);
  }
}

// Whether the index-th run has the setting's value from the preset. With a table the runs may be a
// part of the preset's, so that any of its values will do: those it compares cannot be overridden.
bool IsOwnValue(const Preset& preset, size_t index, const std::string& setting,
                const std::string& value) {
  const auto same = [&](const PresetRun& run) {
    return value == domain::ValueText(run.spec(), setting);
  };
  if (preset.has_table()) return std::ranges::any_of(preset.runs(), same);
  const PresetRun* own = PresetRunAt(preset, index);
  return own == nullptr || same(*own);
}

nlohmann::ordered_json JsonNumber(double value) {
  if (std::isfinite(value)) return value;
  return exporter::NumberText(value);
}

}  // namespace

absl::StatusOr<Preset> FindPreset(ApiClient& client, const std::string& name) {
  const auto answer = client.Call(client.experiments(), &ExperimentService::Stub::ListPresets,
                                  normlab::v1::ListPresetsRequest());
  if (!answer.ok()) return answer.status();
  std::vector<std::string> names;
  for (const Preset& preset : answer->presets()) {
    if (preset.name() == name) return preset;
    names.push_back(Clean(preset.name()));
  }
  return absl::NotFoundError(fmt::format("the server has no preset \"{}\"; there is {}",
                                         Clean(name), fmt::join(names, ", ")));
}

std::string ChangedSettings(const Preset& preset, const std::vector<normlab::v1::Run>& runs) {
  std::vector<std::string> changes;
  for (const domain::SettingInfo& setting : domain::Settings()) {
    for (size_t i = 0; i < runs.size(); ++i) {
      const std::string value = domain::ValueText(runs[i].spec(), setting.name);
      if (IsOwnValue(preset, i, setting.name, value)) continue;
      const std::string change = setting.name + " " + Clean(value);
      if (std::find(changes.begin(), changes.end(), change) == changes.end()) {
        changes.push_back(change);
      }
    }
  }
  return fmt::format("{}", fmt::join(changes, ", "));
}

void PrintReport(const PresetReport& report, Terminal& terminal) {
  terminal.Print("");
  // Aligned also where there is no terminal: a log is read by people.
  const int width = terminal.smart() ? terminal.size().columns : 0;
  for (const std::string& line : ReportTable(report).Aligned(terminal.style(), width)) {
    terminal.Print(line);
  }
  terminal.Print("");
  PrintBands(report, terminal);
}

std::string ReportJson(const PresetReport& report, const std::filesystem::path& csv,
                       const std::filesystem::path& svg) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < report.runs.size() && i < report.curves.size(); ++i) {
    const Measured measured = MeasuredOf(report.curves[i]);
    nlohmann::ordered_json row;
    row["id"] = report.runs[i].id();
    row["run"] = report.runs[i].display_name();
    row["state"] = normlab::v1::Run::State_Name(report.runs[i].state());
    if (measured.has_points) {
      row["finalLoss"] = JsonNumber(measured.final_loss);
      row["maxGradientNorm"] = JsonNumber(measured.max_gradient_norm);
    }
    const PresetRun* published = PresetRunAt(report.preset, i);
    if (published != nullptr && published->has_published()) {
      row["publishedFinalLoss"] = published->published().final_loss();
      row["publishedMaxGradientNorm"] = published->published().max_gradient_norm();
      row["band"] = published->band();
    }
    rows.push_back(std::move(row));
  }
  const nlohmann::ordered_json json = {{"event", "report"},
                                       {"preset", report.preset.name()},
                                       {"changedSettings", report.changed_settings},
                                       {"rows", rows},
                                       {"csv", csv.string()},
                                       {"svg", svg.string()}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::StatusOr<int64_t> WriteReportCsv(const PresetReport& report, bool main_series_only,
                                       const std::filesystem::path& path) {
  OutputFile file(path);
  const int64_t rows = exporter::WriteCsv(report.curves, {.main_series_only = main_series_only},
                                          [&file](std::string_view piece) { file.Write(piece); });
  if (absl::Status status = file.Commit(); !status.ok()) return status;
  return rows;
}

absl::Status WriteReportSvg(const PresetReport& report, const std::filesystem::path& path) {
  exporter::SvgOptions options;
  options.title = report.preset.title();
  options.footnote =
      report.changed_settings.empty()
          ? "normlab " + report.preset.name()
          : fmt::format("normlab {} with {}", report.preset.name(), report.changed_settings);
  return WriteFile(path, exporter::PlotSvg(report.curves, options));
}

}  // namespace normlab::client
