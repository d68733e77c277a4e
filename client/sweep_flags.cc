#include "client/sweep_flags.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "client/term/text.h"
#include "server/domain/settings.h"
#include "server/domain/sweep.h"

namespace normlab::client {
namespace {

using domain::SettingInfo;
using domain::SettingType;
using normlab::v1::RunSpec;
using normlab::v1::Sweep;
using normlab::v1::SweepAxis;
using normlab::v1::SweepRange;

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
std::optional<T> Parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::Status Wrong(const char* flag, const std::string& text, const std::string& what) {
  return absl::InvalidArgumentError(fmt::format("{} {}: {}", flag, Clean(text), what));
}

// SETTING and what stands behind the sign.
absl::StatusOr<std::pair<const SettingInfo*, std::string>> SplitAxis(const char* flag,
                                                                     const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return Wrong(flag, text, "needs SETTING=VALUE,VALUE or SETTING=FIRST:LAST");
  }
  const std::string name = text.substr(0, equals);
  const SettingInfo* setting = domain::FindSetting(name);
  if (setting == nullptr) {
    const auto nearest = domain::NearestName(name);
    return Wrong(flag, text,
                 fmt::format("there is no setting \"{}\"{}", Clean(name),
                             nearest ? fmt::format("; did you mean {}?", *nearest) : ""));
  }
  return std::pair(setting, text.substr(equals + 1));
}

// Text may have colons of its own: data=text:alice.
bool IsRange(const SettingInfo& setting, const std::string& values) {
  const bool number = setting.type == SettingType::kInteger || setting.type == SettingType::kNumber;
  return number && values.find(':') != std::string::npos && values.find(',') == std::string::npos;
}

SweepAxis AxisOf(const SettingInfo& setting, const std::string& values) {
  SweepAxis axis;
  axis.set_setting(setting.name);
  for (std::string& value : Split(values, ',')) axis.add_values(std::move(value));
  return axis;
}

// FIRST:LAST, and what else there is.
std::optional<SweepRange> BoundsOf(const std::vector<std::string>& parts) {
  const auto minimum = Parse<double>(parts[0]), maximum = Parse<double>(parts[1]);
  if (!minimum || !maximum) return std::nullopt;
  SweepRange range;
  range.set_minimum(*minimum);
  range.set_maximum(*maximum);
  return range;
}

// "5" or "log5".
bool ReadCount(std::string_view text, SweepRange& range) {
  range.set_logarithmic(text.starts_with("log"));
  if (range.logarithmic()) text.remove_prefix(3);
  const auto count = Parse<int32_t>(text);
  if (!count) return false;
  range.set_count(*count);
  return true;
}

}  // namespace

absl::StatusOr<SweepAxis> ParseGridAxis(const std::string& text) {
  const auto split = SplitAxis("--grid", text);
  if (!split.ok()) return split.status();
  const auto& [setting, values] = *split;
  if (!IsRange(*setting, values)) return AxisOf(*setting, values);
  const std::vector<std::string> parts = Split(values, ':');
  std::optional<SweepRange> range = parts.size() <= 3 ? BoundsOf(parts) : std::nullopt;
  if (!range || (parts.size() == 3 && !ReadCount(parts[2], *range))) {
    return Wrong("--grid", text, "needs FIRST:LAST, FIRST:LAST:COUNT or FIRST:LAST:logCOUNT");
  }
  if (parts.size() == 2) {
    if (setting->type != SettingType::kInteger) {
      return Wrong(
          "--grid", text,
          fmt::format("how many? {0}:5 is five of them, {0}:log5 by logarithms", Clean(values)));
    }
    const double count = range->maximum() - range->minimum() + 1;
    if (count < 2 || count > static_cast<double>(domain::kLargestExperiment)) {
      return Wrong("--grid", text,
                   fmt::format("needs 2 to {} integers", domain::kLargestExperiment));
    }
    range->set_count(static_cast<int32_t>(count));
  }
  SweepAxis axis;
  axis.set_setting(setting->name);
  *axis.mutable_range() = *range;
  return axis;
}

absl::StatusOr<SweepAxis> ParseRandomAxis(const std::string& text) {
  const auto split = SplitAxis("--random", text);
  if (!split.ok()) return split.status();
  const auto& [setting, values] = *split;
  if (!IsRange(*setting, values)) return AxisOf(*setting, values);
  const std::vector<std::string> parts = Split(values, ':');
  std::optional<SweepRange> range = parts.size() <= 3 ? BoundsOf(parts) : std::nullopt;
  if (!range || (parts.size() == 3 && parts[2] != "log")) {
    return Wrong("--random", text, "needs FIRST:LAST or FIRST:LAST:log");
  }
  range->set_logarithmic(parts.size() == 3);
  SweepAxis axis;
  axis.set_setting(setting->name);
  *axis.mutable_range() = *range;
  return axis;
}

void SweepFlags::AddTo(CLI::App& command) {
  const auto add_axes = [&command](const char* flag, std::vector<std::string>& axes,
                                   const char* help) {
    command.add_option(flag, axes, help)
        ->type_name("SETTING=VALUES")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
  };
  add_axes("--grid", grid_, "Every one of A,B,C or A:B (integers), A:B:N, A:B:logN; repeatable");
  add_axes("--random", random_, "Drawn: A,B,C or A:B or A:B:log; repeatable");
  command.add_option("--samples", samples_, "How many draws of --random")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command.add_option("--sample-seed", sample_seed_, "The same draws for the same number")
      ->type_name("N");
  command
      .add_option("--list", list_,
                  "Settings one by one: a JSON object a line, {\"placement\": \"post\"}")
      ->type_name("FILE.jsonl");
  command.add_option("--seeds", seeds_, "Each with the seeds 1 to N")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--stop-above-quantile", quantile_,
                  "Stop runs whose loss is above this quantile of their peers' at --stop-at")
      ->type_name("Q");
  command.add_option("--stop-at", stop_steps_, "Steps at which runs are compared")
      ->type_name("STEP,...")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command.add_option("--stop-peers", minimum_peers_, "Peers that a comparison needs; 3 by default")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  settings_.AddTo(command);
}

absl::Status SweepFlags::AddList(Sweep& sweep) const {
  if (list_.empty()) return absl::OkStatus();
  std::ifstream file(list_);
  if (!file) return absl::InvalidArgumentError(fmt::format("cannot read {}", Clean(list_)));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto status = google::protobuf::util::JsonStringToMessage(line, sweep.add_list());
    if (status.ok()) continue;
    const absl::string_view what(status.message().data(), status.message().size());
    return absl::InvalidArgumentError(
        fmt::format("{} line {}: {}", Clean(list_), number, Clean(std::string(what))));
  }
  if (file.bad()) return absl::InvalidArgumentError(fmt::format("cannot read {}", Clean(list_)));
  if (sweep.list().empty()) {
    return absl::InvalidArgumentError(fmt::format("{} has no settings", Clean(list_)));
  }
  return absl::OkStatus();
}

void SweepFlags::AddSeeds(Sweep& sweep) const {
  if (seeds_ == 0) return;
  SweepAxis& axis = *sweep.add_axes();
  axis.set_setting("seed");
  for (int32_t seed = 1; seed <= seeds_; ++seed) axis.add_values(std::to_string(seed));
}

absl::Status SweepFlags::AddDraws(Sweep& sweep) const {
  if (random_.empty()) {
    return samples_ == 0 ? absl::OkStatus()
                         : absl::InvalidArgumentError("--samples needs --random: what to draw");
  }
  if (samples_ == 0) return absl::InvalidArgumentError("--random needs --samples N: how many");
  if (!sweep.axes().empty()) {
    // The base is not in these: only what is their own goes into the list.
    const auto combinations = domain::ExpandSweep(sweep);
    if (!combinations.ok()) return combinations.status();
    sweep.clear_list();
    for (const domain::SweepRun& run : *combinations) *sweep.add_list() = run.spec;
    sweep.clear_axes();
  }
  for (const std::string& text : random_) {
    absl::StatusOr<SweepAxis> axis = ParseRandomAxis(text);
    if (!axis.ok()) return axis.status();
    *sweep.add_axes() = *std::move(axis);
  }
  sweep.set_samples(samples_);
  sweep.set_sample_seed(sample_seed_);
  return absl::OkStatus();
}

absl::Status SweepFlags::AddEarlyStop(Sweep& sweep) const {
  if (stop_steps_.empty() && quantile_ == 0) {
    return minimum_peers_ == 0 ? absl::OkStatus()
                               : absl::InvalidArgumentError("--stop-peers needs --stop-at");
  }
  if (stop_steps_.empty()) {
    return absl::InvalidArgumentError("--stop-above-quantile needs --stop-at STEP,...");
  }
  if (quantile_ == 0) {
    return absl::InvalidArgumentError("--stop-at needs --stop-above-quantile, such as 0.5");
  }
  normlab::v1::EarlyStop& rule = *sweep.mutable_early_stop();
  rule.mutable_steps()->Add(stop_steps_.begin(), stop_steps_.end());
  rule.set_quantile(quantile_);
  rule.set_minimum_peers(minimum_peers_);
  return absl::OkStatus();
}

absl::StatusOr<Sweep> SweepFlags::Build() const {
  if (grid_.empty() && random_.empty() && list_.empty() && seeds_ == 0) {
    return absl::InvalidArgumentError("nothing to vary: give --grid, --random, --list or --seeds");
  }
  Sweep sweep;
  for (const std::string& text : grid_) {
    absl::StatusOr<SweepAxis> axis = ParseGridAxis(text);
    if (!axis.ok()) return axis.status();
    *sweep.add_axes() = *std::move(axis);
  }
  AddSeeds(sweep);
  if (absl::Status status = AddList(sweep); !status.ok()) return status;
  if (absl::Status status = AddDraws(sweep); !status.ok()) return status;
  if (absl::Status status = settings_.Apply(*sweep.mutable_base()); !status.ok()) return status;
  if (absl::Status status = AddEarlyStop(sweep); !status.ok()) return status;
  return sweep;
}

}  // namespace normlab::client
