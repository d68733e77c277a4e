#include "client/probe_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "client/term/table.h"
#include "client/term/text.h"
#include "server/export/number_text.h"
#include "server/export/points_json.h"

namespace normlab::client {
namespace {

using normlab::v1::ReadSeriesRequest;
using normlab::v1::Run;
using normlab::v1::RunService;

// What a block can have, in the order in which it is shown.
struct Quantity {
  const char* series;
  const char* title;
};
constexpr Quantity kQuantities[] = {
    {"attention_entropy", "entropy"}, {"attention_max_score", "max score"},
    {"angular_distance", "angle"},    {"jacobian_gain", "gain"},
    {"jacobian_largest", "largest"},  {"jacobian_distance", "distance"},
};

// Adds "block/3/jacobian_gain" to its block; other series of the step are none of a probe.
void Add(const std::string& series, double value, ProbeNumbers& numbers) {
  if (series == kProbeMark) numbers.log_z = value;
  const size_t slash = series.rfind('/');
  if (slash == std::string::npos) return;
  const std::string block = series.substr(0, slash), quantity = series.substr(slash + 1);
  if (std::ranges::none_of(kQuantities, [&](const Quantity& q) { return q.series == quantity; })) {
    return;
  }
  auto found = std::ranges::find(numbers.blocks, block, &ProbeBlock::name);
  if (found == numbers.blocks.end()) {
    found = numbers.blocks.insert(numbers.blocks.end(), ProbeBlock{block, {}});
  }
  found->values[quantity] = value;
}

void AppendValue(std::string& json, const std::string& name, double value) {
  if (json.back() != '{') json += ',';
  exporter::AppendJsonString(json, name);
  const std::string text = exporter::NumberText(value);
  json += std::isfinite(value) ? ":" + text : ":\"" + text + "\"";
}

bool AnyHas(const std::vector<ProbeBlock>& blocks, const Quantity& quantity) {
  return std::ranges::any_of(
      blocks, [&](const ProbeBlock& block) { return block.values.contains(quantity.series); });
}

}  // namespace

absl::StatusOr<ProbeNumbers> ReadProbeNumbers(ApiClient& client, const Run& run, int64_t step) {
  ReadSeriesRequest request;
  request.set_run(run.id());
  request.set_from_step(step);
  request.set_to_step(step);
  const auto answer = client.Call(client.runs(), &RunService::Stub::ReadSeries, request);
  if (!answer.ok()) return answer.status();
  ProbeNumbers numbers{.run = run, .step = step, .blocks = {}, .log_z = 0};
  for (const auto& series : answer->columns()) {
    for (int i = 0; i < series.column().steps_size(); ++i) {
      if (series.column().steps(i) != step) continue;
      Add(series.column().name(), series.column().values(i), numbers);
    }
  }
  return numbers;
}

std::string ProbeJson(const ProbeNumbers& numbers) {
  std::string json = "{\"run\":";
  exporter::AppendJsonString(json, numbers.run.id());
  json += fmt::format(",\"step\":{},\"values\":{{", numbers.step);
  for (const ProbeBlock& block : numbers.blocks) {
    for (const Quantity& quantity : kQuantities) {
      const auto found = block.values.find(quantity.series);
      if (found == block.values.end()) continue;
      AppendValue(json, block.name + "/" + quantity.series, found->second);
    }
  }
  AppendValue(json, kProbeMark, numbers.log_z);
  return json + "}}";
}

void PrintProbe(const ProbeNumbers& numbers, Terminal& terminal) {
  terminal.Print(
      fmt::format("{}: step {}", Clean(numbers.run.display_name()), CountText(numbers.step)));
  std::vector<Table::Column> columns = {{"block"}};
  for (const Quantity& quantity : kQuantities) {
    if (AnyHas(numbers.blocks, quantity)) columns.push_back({quantity.title, Align::kRight});
  }
  Table table(columns);
  for (const ProbeBlock& block : numbers.blocks) {
    std::vector<Table::Cell> row = {{Clean(block.name)}};
    for (const Quantity& quantity : kQuantities) {
      if (!AnyHas(numbers.blocks, quantity)) continue;
      const auto found = block.values.find(quantity.series);
      row.push_back({found == block.values.end() ? "" : exporter::ShortNumberText(found->second)});
    }
    table.Add(std::move(row));
  }
  table.PrintTo(terminal);
  terminal.Print(fmt::format("log Z {}", exporter::ShortNumberText(numbers.log_z)));
}

}  // namespace normlab::client
