// Every setting does something: given another value it changes what training puts out or the number
// of parameters, or it is refused. A setting that could be set and did nothing would be a lie in
// somebody's table.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "server/domain/settings.h"
#include "server/domain/spec.h"
#include "server/trainer/link/settings.h"
#include "server/trainer/trainer.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/trainer/recorder.h"

namespace normlab::trainer {
namespace {

using Values = std::map<std::string, std::string>;

// A model of a few hundred milliseconds.
const Values kSmall = {{"layers", "2"},           {"d_model", "16"},       {"heads", "2"},
                       {"vocab_size", "16"},      {"steps", "6"},          {"sequence_length", "8"},
                       {"batch_size", "4"},       {"threads", "1"},        {"diagnose_every", "3"},
                       {"learning_rate", "0.05"}, {"norm_epsilon", "1e-3"}};

struct Case {
  Values around;      // what else has to be set for it to count
  std::string value;  // one that differs from the setting's present one; empty: every choice
};

// Settings whose case does not follow from their declaration.
const std::map<std::string, Case> kCases = {
    {"model", {{}, "xl"}},
    {"placement", {{{"layers", "4"}}, ""}},  // so that a quarter of the blocks is one
    {"norm_epsilon", {{}, "0.5"}},
    {"residual_scale", {{}, "0.5"}},
    {"mix_fraction", {{}, "0.5"}},
    {"layerscale_init", {{}, "0.5"}},
    {"dyt_alpha", {{}, "0.7"}},
    {"layers", {{}, "3"}},
    {"decoder_layers", {{{"data", "copy"}}, "3"}},
    {"d_model", {{}, "24"}},
    {"heads", {{}, "4"}},
    {"ffn_width", {{}, "24"}},
    {"experts", {{}, "3"}},
    {"capacity_factor", {{}, "0.5"}},
    {"switch_overflow", {{{"capacity_factor", "0.25"}}, "pass"}},
    {"balance_coefficient", {{}, "0.5"}},
    {"memory_length", {{}, "3"}},
    {"table_length", {{{"memory_length", "8"}}, "4"}},
    {"vocab_size", {{}, "17"}},
    {"sequence_length", {{}, "9"}},
    {"batch_size", {{}, "5"}},
    {"accumulate", {{}, "2"}},
    {"steps", {{}, "7"}},
    {"dropout", {{}, "0.25"}},
    {"momentum", {{}, "0.5"}},
    {"learning_rate", {{}, "0.01"}},
    {"learning_rate_floor", {{}, "0.01"}},
    {"warmup_steps", {{}, "4"}},
    {"warmup_fraction", {{}, "0.5"}},
    {"beta1", {{}, "0.5"}},
    {"beta2", {{}, "0.5"}},
    {"epsilon", {{}, "0.01"}},
    {"weight_decay", {{}, "0.5"}},
    {"clip_norm", {{}, "0.1"}},
    {"decay_parameters", {{{"weight_decay", "0.5"}}, "matrices"}},
    {"seed", {{}, "8"}},
    {"data", {{}, "copy"}},
    {"init_from", {{}, "weights"}},
    {"allow_missing", {{{"init_from", "half"}}, "on"}},
    {"validation_fraction", {{{"validate_every", "2"}}, "0.5"}},
    {"validate_every", {{}, "2"}},
    {"threads", {{{"d_model", "32"}, {"batch_size", "8"}}, "2"}},
    {"diagnose_every", {{}, "2"}},
    {"probe_every", {{}, "2"}},
    {"checkpoint_every", {{}, "2"}},
    {"checkpoint_seconds", {{}, "2"}},
    {"keep_checkpoints", {{{"checkpoint_every", "2"}}, "1"}},
    {"stop_on_non_finite",
     {{{"learning_rate", "1000"}, {"norm_gain", "off"}, {"placement", "none"}}, "off"}},
};

class SettingsEffectTest : public testing::TestWithParam<std::string> {
 protected:
  SettingsEffectTest() {
    std::ofstream text(directory_.path() / "text");
    for (int i = 0; i < 3000; ++i) text << "Round \u00fcber " << i * 7919 % 1013 << ".\n";
  }

  // Everything a run shows: "refused: why", or its parameters, series and checkpoints.
  std::string Outcome(const Values& values) {
    v1::RunSpec given;
    for (const auto& [name, value] : values) {
      const absl::Status status = domain::SetFromText(given, name, value);
      if (!status.ok()) return "refused: " + std::string(status.message());
    }
    const auto wrong = domain::CheckSpec(given, {.cpu_threads = 4, .memory_bytes = 0});
    if (!wrong.empty()) return "refused: " + wrong[0].field + " " + wrong[0].description;
    absl::StatusOr<TrainingSettings> settings = SettingsFromSpec(domain::EffectiveSpec(given));
    if (!settings.ok()) return "unresolved: " + settings.status().ToString();
    return Train(*settings, values);
  }

  std::string Train(TrainingSettings settings, const Values& values) {
    const std::filesystem::path checkpoints = directory_.path() / "checkpoints";
    std::filesystem::remove_all(checkpoints);
    std::filesystem::create_directory(checkpoints);
    settings.checkpoint_directory = checkpoints;
    if (settings.data == "text") settings.text_file = directory_.path() / "text";
    if (values.contains("init_from")) settings.init_file = WeightsOf(values.at("init_from"));
    Recorder recorder;
    std::ostringstream out;
    try {
      // Each step takes a second, for what depends on time.
      std::chrono::steady_clock::time_point time;
      const auto clock = [&time] { return time += std::chrono::seconds(1); };
      const Result result = trainer::Train(settings, recorder, clock);
      out << "ended " << static_cast<int>(result.ending) << " at " << result.last_step << '\n';
    } catch (const std::runtime_error& error) {
      return std::string("refused by the engine: ") + error.what();
    }
    out << recorder.model.parameter_count << " parameters\n" << std::hexfloat;
    for (const auto& [name, points] : recorder.series) {
      if (name == "step_milliseconds" || name == "tokens_per_second") continue;
      out << name;
      for (const double value : points) out << ' ' << value;
      out << '\n';
    }
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints)) {
      out << entry.path().filename() << '\n';
    }
    return out.str();
  }

  // "weights": a checkpoint of the small model; "half": of one with fewer layers.
  std::filesystem::path WeightsOf(const std::string& name) {
    const std::filesystem::path folder = directory_.path() / name;
    if (std::filesystem::create_directory(folder)) {
      v1::RunSpec spec;
      for (const auto& [key, value] : kSmall)
        EXPECT_TRUE(domain::SetFromText(spec, key, value).ok());
      if (name == "half") spec.set_layers(1);
      spec.set_seed(99);
      TrainingSettings settings = *SettingsFromSpec(domain::EffectiveSpec(spec));
      settings.checkpoint_directory = folder;
      settings.checkpoint_every = settings.steps;
      Recorder recorder;
      trainer::Train(settings, recorder);
    }
    return std::filesystem::directory_iterator(folder)->path();
  }

  fakes::TempDir directory_;
};

// "ffn=switch" -> {"ffn", "switch"}; data=text stands for a text of the server.
void AddNeeds(const domain::SettingInfo& setting, Values& values) {
  if (setting.needs.empty()) return;
  const size_t equals = setting.needs.find('=');
  const std::string name = setting.needs.substr(0, equals);
  const std::string value = setting.needs.substr(equals + 1, setting.needs.find('|') - equals - 1);
  values[name] = value == "text" ? "text:any" : value;
  if (value == "text") values["vocab_size"] = "256";
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const domain::SettingInfo& setting : domain::Settings()) {
    if (!setting.server_only) names.push_back(setting.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Settings, SettingsEffectTest, testing::ValuesIn(Names()),
                         [](const auto& name) { return name.param; });

TEST_P(SettingsEffectTest, AnotherValueShows) {
  const domain::SettingInfo& setting = *domain::FindSetting(GetParam());
  Values base = kSmall;
  const auto found = kCases.find(setting.name);
  AddNeeds(setting, base);
  if (found != kCases.end()) {
    for (const auto& [name, value] : found->second.around) base[name] = value;
  }
  const std::string before = Outcome(base);
  // Without allow_missing, half of the weights is refused: that is what it changes.
  EXPECT_EQ(before.starts_with("ended"), setting.name != "allow_missing") << before;

  std::vector<std::string> others;
  if (found != kCases.end() && !found->second.value.empty()) {
    others.push_back(found->second.value);
  } else if (setting.type == domain::SettingType::kSwitch) {
    others.push_back(setting.default_text == "true" ? "off" : "on");
  } else {
    others = setting.choices;
  }
  ASSERT_FALSE(others.empty()) << "give it a case";
  const std::string present = domain::ValueText(
      [&] {
        v1::RunSpec spec;
        for (const auto& [name, value] : base) {
          EXPECT_TRUE(domain::SetFromText(spec, name, value).ok());
        }
        return domain::EffectiveSpec(spec);
      }(),
      setting.name);
  int tried = 0;
  for (const std::string& other : others) {
    if (other == "auto" || other == present) continue;
    Values changed = base;
    changed[setting.name] = other;
    EXPECT_NE(Outcome(changed), before) << setting.name << " = " << other << " changes nothing";
    ++tried;
  }
  EXPECT_GT(tried, 0) << "no other value than " << present;
}

}  // namespace
}  // namespace normlab::trainer
