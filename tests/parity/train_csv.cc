// normlab-train-csv: trains one run with the engine alone (no server) and writes its curve.
//
//   normlab-train-csv --placement=post --warmup_steps=120 --run="Post-Norm" > curve.csv
//
// Columns run,step,loss,gradient_norm,learning_rate as everywhere in normlab; numbers in the fewest
// digits that read back to the same double. `--dump=PREFIX` trains nothing and writes the initial
// weights (PREFIX.bin, described by PREFIX.txt) and the first batches (PREFIX.tokens) instead.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "server/trainer/train/data.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {
namespace {

struct Options {
  TrainingSettings settings;
  std::string run = "run";
  std::string dump;
  bool quiet = false;  // no rows, only the summary
  bool final_norm_set = false;
};

template <typename T>
T Parse(std::string_view name, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error("--" + std::string(name) + ": \"" + std::string(text) +
                             "\" is no number");
  }
  return value;
}

// Assigns if `name` is `key`.
template <typename T>
bool Take(std::string_view key, std::string_view name, std::string_view text, T& target) {
  if (key != name) return false;
  if constexpr (std::is_same_v<T, std::string>) {
    target = text;
  } else if constexpr (std::is_same_v<T, bool>) {
    target = text != "false" && text != "off" && text != "0";
  } else {
    target = Parse<T>(name, text);
  }
  return true;
}

void SetOption(std::string_view name, std::string_view text, Options& o) {
  TrainingSettings& s = o.settings;
  if (name == "final_norm") o.final_norm_set = true;
  const bool known =
      Take("run", name, text, o.run) || Take("dump", name, text, o.dump) ||
      Take("quiet", name, text, o.quiet) || Take("placement", name, text, s.placement) ||
      Take("norm", name, text, s.norm) || Take("norm_epsilon", name, text, s.norm_epsilon) ||
      Take("final_norm", name, text, s.final_norm) || Take("layers", name, text, s.layers) ||
      Take("d_model", name, text, s.d_model) || Take("heads", name, text, s.heads) ||
      Take("ffn_width", name, text, s.ffn_width) || Take("vocab_size", name, text, s.vocab_size) ||
      Take("sequence_length", name, text, s.sequence_length) ||
      Take("batch_size", name, text, s.batch_size) || Take("steps", name, text, s.steps) ||
      Take("learning_rate", name, text, s.learning_rate) ||
      Take("warmup_steps", name, text, s.warmup_steps) || Take("beta1", name, text, s.beta1) ||
      Take("beta2", name, text, s.beta2) || Take("epsilon", name, text, s.epsilon) ||
      Take("weight_decay", name, text, s.weight_decay) ||
      Take("decay_parameters", name, text, s.decay_parameters) ||
      Take("seed", name, text, s.seed) || Take("threads", name, text, s.threads);
  if (!known) throw std::runtime_error("unknown option --" + std::string(name));
}

Options ParseOptions(std::span<char*> arguments) {
  Options options;
  for (const std::string_view argument : arguments) {
    if (!argument.starts_with("--")) {
      throw std::runtime_error("expected --name=value, not " + std::string(argument));
    }
    const size_t equals = argument.find('=');
    const bool has_value = equals != std::string_view::npos;
    SetOption(argument.substr(2, has_value ? equals - 2 : equals),
              has_value ? argument.substr(equals + 1) : "true", options);
  }
  if (!options.final_norm_set) options.settings.final_norm = options.settings.placement == "pre";
  return options;
}

// The fewest digits that read back to the same double; "NaN", "Infinity" and "-Infinity" in words.
std::string Shortest(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

class CsvWriter final : public Observer {
 public:
  explicit CsvWriter(const Options& options) : options_(options) {
    if (!options_.quiet) std::puts("run,step,loss,gradient_norm,learning_rate");
  }

  void OnModel(const ModelSummary& summary) override { summary_ = summary; }

  void OnSeries(std::span<const std::string> names) override {
    names_.insert(names_.end(), names.begin(), names.end());
  }

  void OnStep(int64_t step, std::span<const Observation> observations) override {
    milliseconds_ += Find(observations, "step_milliseconds");
    ++steps_;
    if (options_.quiet) return;
    std::printf("%s,%lld,%s,%s,%s\n", options_.run.c_str(), static_cast<long long>(step),
                Shortest(Find(observations, "loss")).c_str(),
                Shortest(Find(observations, "gradient_norm")).c_str(),
                Shortest(Find(observations, "learning_rate")).c_str());
  }

  void OnCheckpoint(int64_t, const std::string&, int64_t) override {}
  Request Requested() override { return Request::kGoOn; }

  void PrintSummary(const Result& result) const {
    std::fprintf(stderr, "%s: %lld parameters, %s, torch %s, %.2f ms a step%s%s\n",
                 options_.run.c_str(), static_cast<long long>(summary_.parameter_count),
                 summary_.instruction_set.c_str(), std::string(EngineVersion()).c_str(),
                 milliseconds_ / static_cast<double>(steps_),
                 result.reason.empty() ? "" : ", ended early: ", result.reason.c_str());
  }

 private:
  double Find(std::span<const Observation> observations, std::string_view name) const {
    for (const Observation& observation : observations) {
      if (names_[observation.series] == name) return observation.value;
    }
    return std::nan("");
  }

  const Options& options_;
  ModelSummary summary_;
  std::vector<std::string> names_;
  double milliseconds_ = 0;
  int64_t steps_ = 0;
};

// Everything a program without this engine needs to compare the starting point bit for bit.
void Dump(const Options& options) {
  Learner learner(options.settings);
  std::ofstream values(options.dump + ".bin", std::ios::binary);
  std::ofstream names(options.dump + ".txt");
  for (const Parameter& parameter : learner.parameters().all()) {
    const float* data = learner.weights().data() + parameter.offset;
    values.write(reinterpret_cast<const char*>(data),
                 static_cast<std::streamsize>(parameter.count * 4));
    names << parameter.path;
    for (const int64_t size : parameter.shape) names << ' ' << size;
    names << '\n';
  }
  Batch batch;
  std::ofstream batches(options.dump + ".tokens", std::ios::binary);
  const auto data = MakeDataSource(options.settings);
  for (int64_t step = 0; step < options.settings.steps; ++step) {
    data->Next(batch);
    batches.write(reinterpret_cast<const char*>(batch.tokens.data()),
                  static_cast<std::streamsize>(batch.tokens.size() * 4));
    batches.write(reinterpret_cast<const char*>(batch.targets.data()),
                  static_cast<std::streamsize>(batch.tokens.size() * 4));
  }
}

int Main(std::span<char*> arguments) {
  try {
    const Options options = ParseOptions(arguments);
    if (!options.dump.empty()) {
      Dump(options);
      return 0;
    }
    CsvWriter writer(options);
    const Result result = Train(options.settings, writer);
    writer.PrintSummary(result);
    return result.ending == Ending::kDiverged ? 5 : 0;
  } catch (const std::exception& error) {
    std::cerr << "normlab-train-csv: " << error.what() << '\n';
    return 2;
  }
}

}  // namespace
}  // namespace normlab::trainer

int main(int argc, char** argv) {
  return normlab::trainer::Main(std::span(argv + 1, static_cast<size_t>(argc - 1)));
}
