#include "server/domain/studies.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "server/domain/settings.h"

namespace normlab::domain {
namespace {

using Table = v1::PresetTable;
using Given = std::vector<std::pair<std::string_view, std::string_view>>;

constexpr double kOpen = std::numeric_limits<double>::infinity();

// Rows of a table take these in turn; the first two are Pre-Norm's and Post-Norm's.
constexpr std::array kColours = {"#2563eb", "#dc5a3a", "#138a72", "#a05ac8",
                                 "#c39a0b", "#5b6470", "#0ea5c6", "#8c4a2f"};

constexpr std::string_view kMeasured =
    "measured with independent programs in JAX and PyTorch, whose random weights are others";

// A model so small that a hundred steps take seconds: count up modulo 32 over 16 positions.
const Given kMini = {{"layers", "12"},          {"vocab_size", "32"}, {"sequence_length", "16"},
                     {"d_model", "32"},         {"heads", "4"},       {"batch_size", "16"},
                     {"learning_rate", "4e-3"}, {"steps", "120"}};

// The theory's form (Xiong et al. 2020, section 3): one head that gives every position the mean of
// all values, ReLU, weights N(0, 1/d), inputs N(0, I), norms without gain.
const Given kTheory = {{"heads", "1"},       {"attention", "uniform"}, {"causal", "false"},
                       {"bias", "false"},    {"positions", "none"},    {"d_model", "128"},
                       {"ffn_width", "128"}, {"activation", "relu"},   {"init", "fan-in"},
                       {"data", "gaussian"}, {"norm_gain", "false"},   {"norm_epsilon", "1e-12"},
                       {"vocab_size", "64"}, {"batch_size", "8"},      {"sequence_length", "16"},
                       {"steps", "1"},       {"diagnose_every", "1"},  {"diagnose_tensors", "true"},
                       {"probe_every", "1"}};

// Builds one preset.
class Study {
 public:
  Study(std::string name, std::string title, std::string description, Table::Quantity quantity) {
    preset_.set_name(std::move(name));
    preset_.set_title(std::move(title));
    preset_.set_description(std::move(description));
    preset_.mutable_table()->set_quantity(quantity);
  }

  void SetSource(std::string_view source) { preset_.set_source(std::string(source)); }
  void AddRowSetting(const std::string& name) { preset_.mutable_table()->add_row_settings(name); }
  void SetColumnSetting(const std::string& name) {
    preset_.mutable_table()->set_column_setting(name);
  }

  // One run for each seed from 1, in the colour of the row-th row.
  void AddRuns(const std::string& name, size_t row, int seeds, const Given& base,
               const Given& own) {
    for (int seed = 1; seed <= seeds; ++seed) {
      v1::PresetRun& run = *preset_.add_runs();
      run.set_display_name(name + " · seed {seed}");
      run.set_colour(kColours[row % kColours.size()]);
      run.mutable_spec()->set_seed(seed);
      for (const Given* part : {&base, &own}) {
        for (const auto& [key, value] : *part) {
          // A mistake in this file, which every test of it would meet.
          if (!SetFromText(*run.mutable_spec(), key, value).ok()) std::abort();
        }
      }
    }
  }

  void Expect(std::vector<std::string> row, const std::string& column, double value, double minimum,
              double maximum) {
    v1::PresetExpectation& expected = *preset_.mutable_table()->add_expectations();
    for (std::string& label : row) expected.add_row(std::move(label));
    expected.set_column(column);
    expected.set_value(value);
    if (minimum > -kOpen) expected.set_minimum(minimum);
    if (maximum < kOpen) expected.set_maximum(maximum);
  }

  v1::Preset Build() && { return std::move(preset_); }

 private:
  v1::Preset preset_;
};

v1::Preset InitGradients() {
  Study study(
      "init-gradients", "Gradient of the last layer before training, over depth",
      "Why Post-Norm needs warmup (Xiong et al. 2020): at initialisation the gradient of its "
      "last layer does not shrink with depth, while Pre-Norm's shrinks like one over the "
      "root of the depth. One head, uniform attention, ReLU, Gaussian inputs; the number is "
      "the gradient norm of the last block's second feed-forward matrix, mean of 4 seeds. "
      "The gauge shows the way back through a block: the gain of Pre-Norm's Jacobian and "
      "its distance from the identity.",
      Table::QUANTITY_LAST_FFN_GRADIENT);
  study.SetSource(kMeasured);
  study.AddRowSetting("placement");
  study.SetColumnSetting("layers");
  const std::array depths = {"1", "2", "6", "12", "24", "32"};
  const std::array<std::pair<std::string, std::array<double, 6>>, 2> expected = {{
      {"pre", {.577, .504, .350, .263, .209, .168}},
      {"post", {.584, .646, .875, .958, .953, .972}},
  }};
  // Three standard deviations of the difference between two means of 4 seeds, from 16 seeds here.
  constexpr std::array<double, 6> kScatter = {.08, .15, .26, .27, .34, .39};
  for (size_t row = 0; row < expected.size(); ++row) {
    const auto& [placement, values] = expected[row];
    for (size_t i = 0; i < depths.size(); ++i) {
      study.AddRuns("{placement} · {layers} layers", row, 4, kTheory,
                    {{"placement", placement}, {"layers", depths[i]}});
      study.Expect({placement}, depths[i], values[i], values[i] * (1 - kScatter[i]),
                   values[i] * (1 + kScatter[i]));
    }
  }
  study.Expect({"pre"}, "slope", -.42, -.6, -.35);
  study.Expect({"post"}, "slope", .06, -.1, kOpen);
  return std::move(study).Build();
}

v1::Preset StreamGrowth() {
  Study study("stream-growth", "Size of the residual stream by block, before training",
              "What each placement does to the stream at initialisation, in the article's model: "
              "Pre-Norm's mean square grows linearly with depth, because every block adds a branch "
              "of its own size; Post-Norm's stays 1, because every block ends in a norm. Scaled "
              "branches, scaled norms (lns) and norms behind the branches (sandwich, olmo2) change "
              "the rate.",
              Table::QUANTITY_STREAM);
  study.SetSource(kMeasured);
  study.AddRowSetting("placement");
  study.AddRowSetting("init");
  study.AddRowSetting("residual_scale");
  const Given once = {{"steps", "1"}, {"diagnose_every", "1"}};
  struct Row {
    std::string placement, init, scale;
    double last;     // mean square behind block 12; 0: not measured elsewhere
    double scatter;  // relative
  };
  // A norm ends every block of post and deepnorm: mean square 1 to within epsilon. The factor .204
  // is 1 / sqrt(2 * 12): at the start the same as output projections smaller by it, the part of
  // GPT-2's initialisation that slows the growth. With all of it the embedding is small as well.
  const std::vector<Row> rows = {
      {"pre", "flax", "1", 11.4, .2},         {"post", "flax", "1", 1, .01},
      {"pre", "flax", "0.2041241", 1.40, .1}, {"pre", "gpt2", "1", 0, 0},
      {"lns", "flax", "1", 3.00, .2},         {"sandwich", "flax", "1", 22.7, .2},
      {"olmo2", "flax", "1", 23.1, .2},       {"mix", "flax", "1", 11.6, .2},
      {"deepnorm", "deepnorm", "1", 1, .01}};
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    study.AddRuns(
        row.scale == "1" ? "{placement}, {init}" : "{placement}, {init}, scaled", i, 2, once,
        {{"placement", row.placement}, {"init", row.init}, {"residual_scale", row.scale}});
    if (row.last == 0) continue;
    study.Expect({row.placement, row.init, row.scale}, "12", row.last, row.last * (1 - row.scatter),
                 row.last * (1 + row.scatter));
  }
  return std::move(study).Build();
}

v1::Preset Placements() {
  Study study("placements", "Every placement on the small task, without warmup",
              "12 blocks, learning rate 4e-3 from the first step, 120 steps of counting. Most "
              "placements learn; those that normalise the stream itself stall near chance, ln 32 = "
              "3.47. Differences between placements that all reach a loss of about .006 mean "
              "nothing on this task.",
              Table::QUANTITY_FINAL_LOSS);
  study.SetSource(kMeasured);
  study.AddRowSetting("placement");
  study.AddRowSetting("init");
  // What is chaotic has a bound and no number: it ends elsewhere with every change of a bit.
  constexpr double kLearned = .02;
  constexpr double kStalled = 1;
  struct Row {
    std::string placement, init = "flax";
    double value = 0, minimum = -kOpen, maximum = kOpen;  // value 0: never measured elsewhere
  };
  const std::vector<Row> rows = {
      {"pre", "flax", .0055, -kOpen, kLearned},
      {"post", "flax", 3.3, kStalled},
      {"post-single", "flax", 2.9, kStalled},
      {"sandwich", "flax", .0055, -kOpen, kLearned},
      {"olmo2", "flax", .0055, -kOpen, kLearned},
      {"normformer", "flax", .0055, -kOpen, kLearned},
      {"deepnorm", "deepnorm", .0055, -kOpen, kLearned},
      {"admin", "admin", .0055, -kOpen, kLearned},
      {"rezero"},
      {"layerscale"},
      {"b2t", "flax", .0055, -kOpen, kLearned},
      {"residual-dual"},
      {"mix"},
      {"hybrid", "flax", 1.6},
      {"hybrid-star"},
      {"lns", "flax", .0055, -kOpen, kLearned},
      {"none"},
      {"pre", "gpt2", .0055, -kOpen, kLearned},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    study.AddRuns("{placement}, {init}", i, 2, kMini,
                  {{"placement", row.placement}, {"init", row.init}});
    if (row.value == 0) continue;
    study.Expect({row.placement, row.init}, "", row.value, row.minimum, row.maximum);
  }
  return std::move(study).Build();
}

v1::Preset Warmup() {
  Study study("warmup", "Post-Norm with longer and longer warmup",
              "Post-Norm, 12 blocks, learning rate 4e-3, 120 steps of counting: the longer the "
              "linear warmup, the further the run comes. The single runs are chaotic; what is "
              "promised is that 80 steps of warmup end clearly below none.",
              Table::QUANTITY_FINAL_LOSS);
  study.SetSource(kMeasured);
  study.AddRowSetting("warmup_steps");
  const std::array<std::pair<std::string, double>, 5> rows = {
      {{"0", 3.34}, {"10", 2.76}, {"20", 2.11}, {"40", 1.63}, {"80", 1.35}}};
  for (size_t i = 0; i < rows.size(); ++i) {
    study.AddRuns("post · {warmup_steps} steps of warmup", i, 3, kMini,
                  {{"placement", "post"}, {"warmup_steps", rows[i].first}});
    study.Expect({rows[i].first}, "", rows[i].second, -kOpen, kOpen);
  }
  study.Expect({"80"}, "minus first", 1.35 - 3.34, -kOpen, -.5);
  return std::move(study).Build();
}

v1::Preset Text() {
  Study study("text", "Pre-Norm and Post-Norm on a book, without warmup",
              "The article's model reads the bytes of Alice's Adventures in Wonderland, 64 at a "
              "time, at the full learning rate from the first step: Pre-Norm learns faster.",
              Table::QUANTITY_FINAL_LOSS);
  study.SetSource("that Pre-Norm ends below Post-Norm; text and sizes are this program's own");
  study.AddRowSetting("placement");
  const Given book = {{"data", "text:alice"},
                      {"sequence_length", "64"},
                      {"batch_size", "16"},
                      {"steps", "300"},
                      {"validate_every", "50"}};
  const std::array rows = {"pre", "post"};
  for (size_t i = 0; i < rows.size(); ++i) {
    study.AddRuns("{placement}", i, 2, book, {{"placement", rows[i]}});
  }
  study.Expect({"post"}, "minus first", 0, 0, kOpen);
  return std::move(study).Build();
}

v1::Preset DepthLr() {
  Study study("depth-lr", "How deep and how fast: layers against learning rate",
              "Pre-Norm and Post-Norm without warmup, 2 to 48 blocks, four learning rates, 120 "
              "steps of counting. Pre-Norm hardly notices its depth. Post-Norm stalls near chance, "
              "ln 32 = 3.47, the earlier the deeper it is and the faster it is to learn: at 24 "
              "blocks at every rate.",
              Table::QUANTITY_FINAL_LOSS);
  study.SetSource(std::string(kMeasured) + "; 36 and 48 layers have not been measured elsewhere");
  study.AddRowSetting("placement");
  study.AddRowSetting("layers");
  study.SetColumnSetting("learning_rate");
  const std::array depths = {"2", "6", "12", "24", "36", "48"};
  const std::array rates = {"5e-04", "0.002", "0.008", "0.02"};
  for (const auto& [row, placement] : {std::pair(0, "pre"), std::pair(1, "post")}) {
    for (const char* depth : depths) {
      for (const char* rate : rates) {
        study.AddRuns("{placement} · {layers} layers · lr {learning_rate}", row, 3, kMini,
                      {{"placement", placement}, {"layers", depth}, {"learning_rate", rate}});
      }
    }
  }
  // Pre-Norm is smooth: a fifth for other random weights. At 2e-2 the loss is so small that it
  // scatters by its own size, and only its order is promised.
  for (const char* depth : {"2", "6", "12", "24"}) {
    study.Expect({"pre", depth}, "5e-04", 1.6, 1.28, 1.92);
    study.Expect({"pre", depth}, "0.002", .048, .038, .058);
    study.Expect({"pre", depth}, "0.008", .001, .0008, .0014);
    study.Expect({"pre", depth}, "0.02", .0001, -kOpen, .001);
  }
  // Where Post-Norm stalls it is chaotic: a bound and no number.
  constexpr double kStalls = 2.5;
  study.Expect({"post", "6"}, "0.02", 0, kStalls, kOpen);
  study.Expect({"post", "12"}, "5e-04", 2.3, 1.92, kOpen);  // learns, but less than Pre-Norm
  for (const char* rate : {"0.002", "0.008", "0.02"}) {
    study.Expect({"post", "12"}, rate, 0, kStalls, kOpen);
  }
  for (const char* rate : rates) study.Expect({"post", "24"}, rate, 0, kStalls, kOpen);
  return std::move(study).Build();
}

}  // namespace

std::vector<v1::Preset> Studies() {
  return {InitGradients(), StreamGrowth(), Placements(), Warmup(), DepthLr(), Text()};
}

}  // namespace normlab::domain
