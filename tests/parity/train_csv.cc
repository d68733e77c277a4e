// normlab-train-csv: trains one run with the engine alone (no server) and writes its curve.
//
//   normlab-train-csv --placement=post --warmup_steps=120 --run="Post-Norm" > curve.csv
//   normlab-train-csv --set placement=post --set steps=20 --init-file=weights.safetensors
//
// Columns run,step,loss,gradient_norm,learning_rate as everywhere in normlab; numbers in the fewest
// digits that read back to the same double. Every field of TrainingSettings is an option under its
// own name, with or without `--set`. Further options:
//
//   --run=NAME           first column
//   --quiet              no rows, only the summary on standard error
//   --init-file=FILE     the setting init_file: weights by name from a safetensors file
//   --save-init=FILE     trains nothing; writes the initial weights as a safetensors file
//   --series=FILE        everything observed as well: step,series,value
//   --settings           prints every setting as name=value and trains nothing
//   --dump=PREFIX        trains nothing; writes what a program without this engine needs to do the
//                        same steps (see Dump)
#include <algorithm>
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
#include <utility>
#include <variant>
#include <vector>

#include "server/trainer/train/data.h"
#include "server/trainer/train/first_weights.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/train/safetensors.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {
namespace {

struct Options {
  TrainingSettings settings;
  std::string run = "run";
  std::string dump;
  std::string save_init;
  std::string series;
  bool quiet = false;
  bool print_settings = false;
  bool final_norm_set = false;
};

using Field = std::variant<std::string*, double*, int64_t*, bool*>;
using NamedField = std::pair<std::string_view, Field>;

// Every field of TrainingSettings under its own name.
std::vector<NamedField> SettingFields(TrainingSettings& s) {
  return {
      {"model", &s.model},
      {"placement", &s.placement},
      {"norm", &s.norm},
      {"norm_epsilon", &s.norm_epsilon},
      {"norm_gain", &s.norm_gain},
      {"dyt_alpha", &s.dyt_alpha},
      {"final_norm", &s.final_norm},
      {"qk_norm", &s.qk_norm},
      {"residual_scale", &s.residual_scale},
      {"mix_fraction", &s.mix_fraction},
      {"layerscale_init", &s.layerscale_init},
      {"layers", &s.layers},
      {"decoder_layers", &s.decoder_layers},
      {"d_model", &s.d_model},
      {"heads", &s.heads},
      {"ffn_width", &s.ffn_width},
      {"ffn", &s.ffn},
      {"activation", &s.activation},
      {"experts", &s.experts},
      {"capacity_factor", &s.capacity_factor},
      {"switch_overflow", &s.switch_overflow},
      {"balance_coefficient", &s.balance_coefficient},
      {"attention", &s.attention},
      {"causal", &s.causal},
      {"bias", &s.bias},
      {"positions", &s.positions},
      {"tie_embeddings", &s.tie_embeddings},
      {"memory_length", &s.memory_length},
      {"table_length", &s.table_length},
      {"init", &s.init},
      {"init_file", &s.init_file},
      {"allow_missing", &s.allow_missing},
      {"vocab_size", &s.vocab_size},
      {"sequence_length", &s.sequence_length},
      {"data", &s.data},
      {"text_file", &s.text_file},
      {"text_unit", &s.text_unit},
      {"text_order", &s.text_order},
      {"validation_fraction", &s.validation_fraction},
      {"validate_every", &s.validate_every},
      {"batch_size", &s.batch_size},
      {"accumulate", &s.accumulate},
      {"steps", &s.steps},
      {"dropout", &s.dropout},
      {"optimizer", &s.optimizer},
      {"momentum", &s.momentum},
      {"learning_rate", &s.learning_rate},
      {"schedule", &s.schedule},
      {"warmup_steps", &s.warmup_steps},
      {"learning_rate_floor", &s.learning_rate_floor},
      {"beta1", &s.beta1},
      {"beta2", &s.beta2},
      {"epsilon", &s.epsilon},
      {"weight_decay", &s.weight_decay},
      {"decay_parameters", &s.decay_parameters},
      {"clip_norm", &s.clip_norm},
      {"seed", &s.seed},
      {"precision", &s.precision},
      {"threads", &s.threads},
      {"stop_on_non_finite", &s.stop_on_non_finite},
      {"device", &s.device},
      {"cuda_graph", &s.cuda_graph},
      {"gpu_memory_bytes", &s.gpu_memory_bytes},
      {"gpu_context_bytes", &s.gpu_context_bytes},
      {"diagnose_every", &s.diagnose_every},
      {"diagnose_tensors", &s.diagnose_tensors},
      {"probe_every", &s.probe_every},
      {"checkpoint_every", &s.checkpoint_every},
      {"checkpoint_seconds", &s.checkpoint_seconds},
      {"keep_checkpoints", &s.keep_checkpoints},
      {"step_limit", &s.step_limit},
      {"checkpoint_directory", &s.checkpoint_directory},
      {"resume_from", &s.resume_from},
  };
}

template <typename T>
void Parse(std::string_view name, std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return;
  throw std::runtime_error("--" + std::string(name) + ": \"" + std::string(text) +
                           "\" is no number");
}

void Parse(std::string_view, std::string_view text, std::string& value) { value = text; }

void Parse(std::string_view name, std::string_view text, bool& value) {
  value = text == "true" || text == "on" || text == "1";
  if (value || text == "false" || text == "off" || text == "0") return;
  throw std::runtime_error("--" + std::string(name) + ": \"" + std::string(text) +
                           "\" is neither true nor false");
}

// `--init-file` and `--init_file` are the same option.
std::string OptionName(std::string_view text) {
  std::string name(text);
  std::ranges::replace(name, '-', '_');
  return name;
}

void SetOption(std::string_view argument, Options& options) {
  const size_t equals = argument.find('=');
  const bool has_value = equals != std::string_view::npos;
  const std::string name = OptionName(argument.substr(0, equals));
  const std::string_view text = has_value ? argument.substr(equals + 1) : "true";

  std::vector<NamedField> fields = SettingFields(options.settings);
  fields.insert(fields.end(), {{"run", &options.run},
                               {"dump", &options.dump},
                               {"save_init", &options.save_init},
                               {"series", &options.series},
                               {"quiet", &options.quiet},
                               {"settings", &options.print_settings}});
  const auto field = std::ranges::find(fields, name, &NamedField::first);
  if (field == fields.end()) throw std::runtime_error("unknown option --" + name);
  std::visit([&](auto* target) { Parse(name, text, *target); }, field->second);
  if (name == "final_norm") options.final_norm_set = true;
}

// Whether the placement leaves the stream unnormalised, so that the head wants a norm before it.
bool NeedsFinalNorm(std::string_view placement) {
  constexpr std::string_view kNormalised[] = {"post", "post-single", "deepnorm",      "admin",
                                              "b2t",  "rezero",      "residual-dual", "none"};
  return std::ranges::find(kNormalised, placement) == std::end(kNormalised);
}

Options ParseOptions(std::span<char*> arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--set" && i + 1 < arguments.size()) {
      SetOption(arguments[++i], options);
    } else if (argument.starts_with("--")) {
      SetOption(argument.substr(2), options);
    } else {
      throw std::runtime_error("expected --name=value, not " + std::string(argument));
    }
  }
  if (!options.final_norm_set) {
    options.settings.final_norm = NeedsFinalNorm(options.settings.placement);
  }
  return options;
}

// The fewest digits that read back to the same double; "NaN", "Infinity" and "-Infinity" in words.
std::string Shortest(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

void PrintSettings(TrainingSettings settings) {
  for (const auto& [name, field] : SettingFields(settings)) {
    std::cout << name << '=';
    if (const auto* const* text = std::get_if<std::string*>(&field)) std::cout << **text;
    if (const auto* const* number = std::get_if<double*>(&field)) std::cout << Shortest(**number);
    if (const auto* const* count = std::get_if<int64_t*>(&field)) std::cout << **count;
    if (const auto* const* flag = std::get_if<bool*>(&field)) {
      std::cout << (**flag ? "true" : "false");
    }
    std::cout << '\n';
  }
}

class CsvWriter final : public Observer {
 public:
  explicit CsvWriter(const Options& options) : options_(options) {
    if (!options_.quiet) std::puts("run,step,loss,gradient_norm,learning_rate");
    if (options_.series.empty()) return;
    series_.open(options_.series);
    series_ << "step,series,value\n";
  }

  void OnModel(const ModelSummary& summary) override { summary_ = summary; }

  void OnSeries(std::span<const std::string> names) override {
    names_.insert(names_.end(), names.begin(), names.end());
  }

  void OnStep(int64_t step, std::span<const Observation> observations) override {
    for (const Observation& observation : observations) {
      if (!series_.is_open()) break;
      series_ << step << ',' << names_[observation.series] << ',' << Shortest(observation.value)
              << '\n';
    }
    if (std::isnan(Find(observations, "loss"))) return;  // no step of training: a probe's numbers
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
  std::ofstream series_;
  double milliseconds_ = 0;
  int64_t steps_ = 0;
};

// Appends raw little-endian numbers to PREFIX.NAME; no file for what the model does not read.
template <typename T>
void Append(const std::string& prefix, std::string_view name, std::span<const T> values) {
  if (values.empty()) return;
  std::ofstream file(prefix + "." + std::string(name), std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
}

void AppendBatch(const std::string& prefix, const Batch& batch) {
  Append<int32_t>(prefix, "tokens", batch.tokens);
  Append<int32_t>(prefix, "targets", batch.targets);
  Append<int32_t>(prefix, "source", batch.source);
  Append<int32_t>(prefix, "source_lengths", batch.source_lengths);
  Append<float>(prefix, "inputs", batch.inputs);
}

void SaveInit(const Options& options) {
  Learner learner(options.settings);
  SetFirstWeights(options.settings, learner);
  std::vector<TensorToWrite> tensors;
  for (const Parameter& parameter : learner.parameters().all()) {
    const std::span<const float> values = learner.weights().subspan(
        static_cast<size_t>(parameter.offset), static_cast<size_t>(parameter.count));
    tensors.emplace_back(parameter.path, parameter.shape, values);
  }
  WriteSafetensors(options.save_init, {}, tensors);
}

void AppendTensors(const std::string& prefix, std::string_view name, const Learner& learner,
                   const float* buffer) {
  for (const Parameter& parameter : learner.parameters().all()) {
    Append<float>(prefix, name, {buffer + parameter.offset, static_cast<size_t>(parameter.count)});
  }
}

// Everything a program without this engine needs to start from the same point, and what the engine
// makes of its first step:
//   PREFIX.txt        name and shape of each parameter
//   PREFIX.bin        their initial values
//   PREFIX.tokens     of every batch of every step; likewise PREFIX.targets, and PREFIX.source,
//                     .source_lengths and .inputs where the model reads them
//   PREFIX.gradients  the gradient of step 1, before clipping
//   PREFIX.blocks     of the last batch of step 1: input of the first block, output of every block
//   PREFIX.logits     likewise
void Dump(const Options& options) {
  const TrainingSettings& settings = options.settings;
  const std::string& prefix = options.dump;
  for (const char* name : {"txt", "bin", "tokens", "targets", "source", "source_lengths", "inputs",
                           "gradients", "blocks", "logits"}) {
    std::remove((prefix + "." + name).c_str());
  }
  Learner learner(settings);
  SetFirstWeights(settings, learner);
  std::ofstream names(prefix + ".txt");
  for (const Parameter& parameter : learner.parameters().all()) {
    names << parameter.path;
    for (const int64_t size : parameter.shape) names << ' ' << size;
    names << '\n';
  }
  AppendTensors(prefix, "bin", learner, learner.weights().data());

  const auto data = MakeDataSource(settings);
  std::vector<Batch> batches(static_cast<size_t>(settings.accumulate));
  for (int64_t step = 1; step <= settings.steps; ++step) {
    for (Batch& batch : batches) {
      data->Next(batch);
      AppendBatch(prefix, batch);
    }
    if (step == 1) learner.ComputeGradients(step, batches);
  }
  AppendTensors(prefix, "gradients", learner, learner.gradients().data());
  for (size_t share = 0; share < learner.share_count(); ++share) {
    Program& program = learner.program(share);
    const auto append = [&](std::string_view name, Value value) {
      const auto count = static_cast<size_t>(value.rows() * value.width());
      Append<float>(prefix, name, {program.Data(value), count});
    };
    const Model& model = learner.model(share);
    if (!model.blocks.empty()) append("blocks", model.blocks.front().input);
    for (const BlockTaps& block : model.blocks) append("blocks", block.output);
    append("logits", model.logits);
  }
}

int Main(std::span<char*> arguments) {
  try {
    const Options options = ParseOptions(arguments);
    if (options.print_settings) {
      PrintSettings(options.settings);
      return 0;
    }
    if (!options.dump.empty()) Dump(options);
    if (!options.save_init.empty()) SaveInit(options);
    if (!options.dump.empty() || !options.save_init.empty()) return 0;
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
