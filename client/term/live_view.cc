#include "client/term/live_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/term/chart.h"
#include "client/term/text.h"
#include "server/export/number_text.h"

namespace normlab::client {
namespace {

using normlab::v1::Run;

constexpr int kStateWidth = 12;
constexpr int kBarWidth = 12;
constexpr int kNumberWidth = 9;
constexpr int kRemarkWidth = 10;  // what a remark gets before a name is whole
constexpr int kShortestTitle = 12;
constexpr int kTallestChart = 18;
constexpr int kTwoChartsFrom = 100;  // columns

std::string LastText(const exporter::Series& series) {
  return series.values.empty() ? "" : exporter::ShortNumberText(series.values.back());
}

std::string Bar(const WatchedRun& run, const Style& style) {
  const int64_t steps = std::max<int64_t>(1, run.Steps());
  const int64_t step = std::clamp<int64_t>(run.Step(), 0, steps);
  const int filled =
      static_cast<int>(static_cast<double>(step) / static_cast<double>(steps) * kBarWidth);
  std::string full, rest;
  for (int i = 0; i < kBarWidth; ++i) (i < filled ? full : rest) += i < filled ? "█" : "░";
  return style.Paint(full, run.colour) + style.Dim(rest);
}

std::string StepsText(const WatchedRun& run) {
  return fmt::format("{}/{}", CountText(run.Step()), CountText(run.Steps()));
}

// "4 s left", or what there is to say instead.
std::string Remark(const WatchedRun& run) {
  if (std::string remark = RunRemark(run.run); !remark.empty()) return Clean(remark);
  const double remaining = RemainingSeconds(run);
  return remaining < 0 ? "" : DurationText(remaining) + " left";
}

// How the columns of the runs share a terminal of some width.
struct Layout {
  int name = 0, steps = 0, remark = 0;
  bool bar = true, norm = true;
  int compact = 0;  // columns of a terminal with room for glyph, name and percent only; else 0
};

Layout LayOut(const WatchModel& model, int columns) {
  Layout layout;
  int longest = 4;
  for (const WatchedRun& run : model.runs()) {
    longest = std::max(longest, DisplayWidth(Clean(run.run.display_name())));
    layout.steps = std::max(layout.steps, DisplayWidth(StepsText(run)));
    layout.remark = std::max(layout.remark, DisplayWidth(Remark(run)));
  }
  const auto fixed = [&] {
    return kStateWidth + 1 + 1 + layout.steps + (layout.bar ? kBarWidth + 1 : 0) + kNumberWidth +
           1 + (layout.norm ? kNumberWidth + 1 : 0);
  };
  // The bar goes first, then the norm, then a part of the name: the numbers say more than the bar.
  const int remark = 1 + std::min(layout.remark, kRemarkWidth);
  layout.bar = fixed() + longest + remark <= columns;
  layout.norm = fixed() + std::min(longest, 14) <= columns;
  if (fixed() + 6 > columns) layout.compact = columns;
  layout.name = std::clamp(columns - fixed() - remark, std::min(longest, 14), longest);
  layout.name = std::clamp(layout.name, 0, std::max(0, columns - fixed()));
  layout.remark = std::max(0, columns - fixed() - layout.name - 1);
  return layout;
}

std::string CompactLine(const WatchedRun& run, int columns, const Style& style) {
  const int64_t percent = run.Steps() > 0 ? run.Step() * 100 / run.Steps() : 0;
  return Pad(StateGlyph(run.run.state()), 2) +
         style.Paint(Fit(Clean(run.run.display_name()), columns - 8), run.colour) +
         Fit(fmt::format("{} %", percent), 6, Align::kRight);
}

std::string RunLine(const WatchedRun& run, const Layout& layout, const Style& style) {
  if (layout.compact > 0) return CompactLine(run, layout.compact, style);
  std::string line = Pad(StateText(run.run.state(), style), kStateWidth) + " ";
  line += style.Paint(Fit(Clean(run.run.display_name()), layout.name), run.colour) + " ";
  line += Fit(StepsText(run), layout.steps, Align::kRight);
  if (layout.bar) line += " " + Bar(run, style);
  line += " " + Fit(LastText(run.loss), kNumberWidth, Align::kRight);
  if (layout.norm) line += " " + Fit(LastText(run.gradient_norm), kNumberWidth, Align::kRight);
  if (layout.remark > 3) line += " " + style.Dim(Fit(Remark(run), layout.remark));
  return line;
}

std::string HeaderLine(const Layout& layout, const Style& style) {
  if (layout.compact > 0) return style.Dim("  run");
  std::string line = Fit("state", kStateWidth) + " " + Fit("run", layout.name) + " ";
  line += Fit("step", layout.steps, Align::kRight);
  if (layout.bar) line += " " + Fit("", kBarWidth);
  line += " " + Fit("loss", kNumberWidth, Align::kRight);
  if (layout.norm) line += " " + Fit("grad norm", kNumberWidth, Align::kRight);
  return style.Dim(line);
}

Chart ChartOf(const WatchModel& model, const char* title,
              const exporter::Series WatchedRun::*series) {
  Chart chart;
  chart.title = title;
  for (const WatchedRun& run : model.runs()) {
    chart.curves.push_back({&(run.*series), run.colour});
    chart.last_step = std::max({chart.last_step, run.Steps(), run.Step()});
  }
  return chart;
}

std::vector<std::string> Charts(const WatchModel& model, int columns, int rows,
                                const Style& style) {
  const Chart loss = ChartOf(model, "loss (log)", &WatchedRun::loss);
  const int height = std::min(rows, kTallestChart);
  if (columns < kTwoChartsFrom) return DrawChart(loss, columns, height, style);
  const Chart norm =
      ChartOf(model, "gradient norm, before clipping (log)", &WatchedRun::gradient_norm);
  const int width = (columns - 2) / 2;
  std::vector<std::string> left = DrawChart(loss, width, height, style);
  const std::vector<std::string> right = DrawChart(norm, width, height, style);
  for (size_t i = 0; i < left.size(); ++i) left[i] = Pad(left[i], width) + "  " + right[i];
  return left;
}

}  // namespace

double RemainingSeconds(const WatchedRun& run) {
  const normlab::v1::Progress& progress = run.run.progress();
  if (run.run.state() != Run::STATE_RUNNING) return -1;
  if (progress.has_remaining_seconds()) return progress.remaining_seconds();
  if (progress.steps_per_second() <= 0) return -1;
  return static_cast<double>(std::max<int64_t>(0, run.Steps() - run.Step())) /
         progress.steps_per_second();
}

std::string RunRemark(const Run& run) {
  if (run.state() == Run::STATE_QUEUED) return run.wait_reason();
  if (run.state() == Run::STATE_PAUSED) return "go on with: normlab resume " + run.id();
  if (run.state() == Run::STATE_SUCCEEDED) return "";
  return IsTerminal(run.state()) ? run.end_reason() : "";
}

std::vector<std::string> LiveFrame(const WatchModel& model, const LiveFrameInput& input,
                                   const Terminal::Size& size, const Style& style) {
  const int columns = std::max(20, size.columns);
  const Layout layout = LayOut(model, columns);
  std::string right =
      input.notice.empty() ? DurationText(input.elapsed_seconds) : Clean(input.notice);
  const std::string with_progress = input.progress + " · " + right;
  const bool has_room = DisplayWidth(with_progress) + kShortestTitle <= columns;
  if (input.notice.empty() && !input.progress.empty() && has_room) right = with_progress;
  const int title_width = std::max(0, columns - DisplayWidth(right) - 1);
  std::vector<std::string> lines;
  lines.push_back(style.Bold(Fit(Clean(input.title), title_width)) + " " +
                  (input.notice.empty() ? style.Dim(right) : style.Paint(right, "#c39a0b")));
  lines.push_back(HeaderLine(layout, style));
  // Where there are more runs than rows, those that are being trained are shown.
  const size_t room = static_cast<size_t>(std::max(1, size.rows - 4));
  size_t left_out = 0;
  for (const WatchedRun& run : model.runs()) {
    const bool quiet = run.ended || run.run.state() == Run::STATE_QUEUED ||
                       run.run.state() == Run::STATE_PAUSED;
    if (model.runs().size() > room && (quiet || lines.size() >= room + 1)) {
      ++left_out;
      continue;
    }
    lines.push_back(RunLine(run, layout, style));
  }
  if (left_out > 0) lines.push_back(style.Dim(fmt::format("… and {} more runs", left_out)));
  const int rows_left = size.rows - 1 - static_cast<int>(lines.size()) - 1;
  const std::vector<std::string> charts = Charts(model, columns, rows_left, style);
  if (!charts.empty()) lines.push_back("");
  lines.insert(lines.end(), charts.begin(), charts.end());
  return lines;
}

}  // namespace normlab::client
