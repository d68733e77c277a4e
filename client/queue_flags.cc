#include "client/queue_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "client/run_ref.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Dependency;

// Reads the unit behind a number; 0 for what is none.
double UnitOf(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"K", 0x1p10}, {"M", 0x1p20}, {"G", 0x1p30}, {"T", 0x1p40}};
  if (unit.empty() || unit == "B") return 1;
  for (const auto& [letter, factor] : kUnits) {
    if (unit.substr(0, 1) != letter) continue;
    const std::string_view rest = unit.substr(1);
    return rest.empty() || rest == "iB" || rest == "B" ? factor : 0;
  }
  return 0;
}

}  // namespace

std::optional<int64_t> BytesFromText(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const double bytes = number * UnitOf(unit);
  if (!std::isfinite(bytes) || bytes < 1 || bytes >= 0x1p62) return std::nullopt;
  return std::llround(bytes);
}

absl::StatusOr<Dependency> QueueFlags::ParseDependency(ApiClient& client, const std::string& text) {
  std::string reference = text;
  Dependency dependency;
  for (const char* condition : {"ok", "any"}) {
    const std::string ending = fmt::format(":{}", condition);
    if (!text.ends_with(ending)) continue;
    reference.resize(text.size() - ending.size());
    dependency.set_condition(condition);
  }
  const absl::StatusOr<normlab::v1::Run> run = ResolveRun(client, reference);
  if (!run.ok()) return run.status();
  dependency.set_run(run->id());
  return dependency;
}

void QueueFlags::AddTo(CLI::App& command) {
  command.add_option("--priority", priority_, "high (admins), normal or low")->type_name("CLASS");
  command.add_flag("--hold", hold_, "Keep it in the queue until it is released");
  command
      .add_option("--after", after_,
                  "Start after this run has succeeded, or with :any has ended; repeatable")
      ->type_name("RUN[:any]")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command.add_option("--gpus", gpus_, "GPUs that it needs for itself")
      ->type_name("N")
      ->check(CLI::Validator(CLI::PositiveNumber).description(""));
  command
      .add_option_function<std::string>(
          "--gpu-memory",
          [this](const std::string& text) {
            const std::optional<int64_t> bytes = BytesFromText(text);
            if (!bytes) {
              throw CLI::ValidationError(
                  "--gpu-memory",
                  fmt::format("\"{}\" is no size; write 8GiB, 500MiB or a number of bytes",
                              Clean(text)));
            }
            gpu_memory_ = *bytes;
          },
          "Memory that it may use on each GPU: 8GiB, 500MiB")
      ->type_name("SIZE");
  command.add_flag("--exclusive", exclusive_, "Share the GPU with no other run");
}

std::string DependencyText(const Dependency& dependency) {
  return fmt::format("the {} of {}", dependency.condition() == "any" ? "end" : "success",
                     Clean(dependency.run()));
}

std::string ResourcesText(const normlab::v1::Resources& resources) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (resources.gpus() > 0) {
    add(fmt::format("{} GPU{}", resources.gpus(), resources.gpus() == 1 ? "" : "s"));
  }
  if (resources.gpu_memory_bytes() > 0) {
    add(fmt::format("{} of memory on each", BytesText(resources.gpu_memory_bytes())));
  }
  if (resources.exclusive()) add("shared with no other run");
  return text;
}

}  // namespace normlab::client
