#include "server/domain/presets.h"

#include <string>
#include <utility>

#include "server/domain/settings.h"
#include "server/domain/spec.h"
#include "server/domain/studies.h"
#include "server/domain/varied_settings.h"

namespace normlab::domain {
namespace {

constexpr char kUnstable[] =
    "final loss > 1 and maximum gradient norm > 1.5; steps 1 to 8 within 1 % of the published "
    "values. After about 12 steps equal mathematics parts ways (chaos), so the end is a band and "
    "never a number: repetitions stall near ln 64 = 4.16";

v1::PresetRun ArticleRun(std::string name, std::string placement, double warmup_fraction,
                         std::string colour, double loss, double norm, std::string band) {
  v1::PresetRun run;
  run.set_display_name(std::move(name));
  run.mutable_spec()->set_placement(std::move(placement));
  run.mutable_spec()->set_warmup_fraction(warmup_fraction);
  run.set_colour(std::move(colour));
  run.mutable_published()->set_final_loss(loss);
  run.mutable_published()->set_max_gradient_norm(norm);
  run.set_band(std::move(band));
  return run;
}

// The founding experiment. Everything but placement and warmup is the settings' defaults, which
// are the article's; a test says so.
v1::Preset Article() {
  v1::Preset preset;
  preset.set_name("article");
  preset.set_title("Pre-Norm, Post-Norm, and Post-Norm with warmup");
  preset.set_description(
      "The same 12-layer causal Transformer trained three ways on arithmetic sequences. Pre-Norm "
      "keeps an identity path x + F(N(x)) whose Jacobian contains I; in Post-Norm, N(x + F(x)), "
      "every route back passes a norm's Jacobian; warmup rescues it.");
  preset.set_source("the article's published curves (article.csv, 540 rows)");
  *preset.add_runs() =
      ArticleRun("Pre-Norm · no warmup", "pre", 0, "#2563eb", .00165, 1.004,
                 "every step within 0.1 % of the published loss and gradient norm");
  *preset.add_runs() =
      ArticleRun("Post-Norm · no warmup", "post", 0, "#dc5a3a", 4.21, 6.96, kUnstable);
  // Two thirds of the run: floor(2 * steps / 3). The fraction is the double just above 2/3, so that
  // the rounded product never falls below a whole number.
  *preset.add_runs() = ArticleRun(
      "Post-Norm · {warmup_steps}-step warmup", "post", 0.6666666666666667, "#138a72", .0174, 2.76,
      "steps 1 to 100 within 0.2 % of the published values, final loss .0174 +- .0005");
  return preset;
}

}  // namespace

const std::vector<v1::Preset>& Presets() {
  static const auto* const kPresets = [] {
    auto* presets = new std::vector<v1::Preset>{Article()};
    for (v1::Preset& study : Studies()) presets->push_back(std::move(study));
    return presets;
  }();
  return *kPresets;
}

std::string FillName(const std::string& name, const v1::RunSpec& effective) {
  std::string filled;
  size_t done = 0;
  while (true) {
    const size_t open = name.find('{', done);
    const size_t close = name.find('}', open);
    if (open == std::string::npos || close == std::string::npos) return filled + name.substr(done);
    filled += name.substr(done, open - done);
    filled += ValueText(effective, name.substr(open + 1, close - open - 1));
    done = close + 1;
  }
}

v1::ListPresetsResponse ListPresets() {
  v1::ListPresetsResponse list;
  for (const v1::Preset& preset : Presets()) {
    v1::Preset& shown = *list.add_presets();
    shown = preset;
    for (v1::PresetRun& run : *shown.mutable_runs()) {
      run.set_display_name(FillName(run.display_name(), EffectiveSpec(run.spec())));
    }
  }
  return list;
}

const v1::Preset* FindPreset(std::string_view name) {
  for (const v1::Preset& preset : Presets()) {
    if (preset.name() == name) return &preset;
  }
  return nullptr;
}

std::vector<FieldViolation> CheckOverrides(const v1::Preset& preset, const v1::RunSpec& overrides) {
  std::vector<FieldViolation> wrong;
  if (!preset.has_table()) return wrong;
  std::vector<v1::RunSpec> specs;
  for (const v1::PresetRun& run : preset.runs()) specs.push_back(run.spec());
  for (const std::string& name : VariedSettings(specs)) {
    if (!IsSet(overrides, name)) continue;
    wrong.push_back({"overrides." + name, "preset " + preset.name() +
                                              " compares several values of it; choose among its "
                                              "runs instead"});
  }
  return wrong;
}

}  // namespace normlab::domain
