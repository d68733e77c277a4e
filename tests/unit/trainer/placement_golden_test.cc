// One block output of every placement, computed in double precision by placement_golden.py from the
// formulas alone, and kept here as numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/model/placement/placement.h"
#include "server/trainer/trainer.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

struct Golden {
  std::string_view name;  // a placement, with "first" its first block, with "stack" the model's end
  std::vector<double> output;  // [3, 4]
};

const Golden kGolden[] = {
    {"pre",
     {-1.408006143862, 0.226651179797, 0.151160202163, -0.522340582109, -1.532371137268,
      1.227425163363, -0.164827983997, -0.066779017185, -0.085900323992, 1.219343058222,
      0.836230338187, -0.143331437567}},
    {"post",
     {-1.396286504062, 1.107058352423, 0.222898623750, -0.020321704538, -1.144640569181,
      1.508457069127, -0.610176660307, 0.146347513454, -0.499521059510, 1.434770675229,
      -0.054187654849, -0.988867723748}},
    {"post-single",
     {-1.993190305132, 1.151875133549, 0.784738099473, -0.029903180833, -1.763679429910,
      1.669686785586, -0.015491840436, 0.062738600793, -1.221888998838, 1.628304862933,
      0.662489031073, -1.014189298534}},
    {"sandwich",
     {-1.996880569810, 0.656846023867, 2.169612708555, -1.940087871922, -2.437494774719,
      2.019927624962, 1.871388396826, -1.599402315013, -0.877430853705, 1.577491200367,
      2.825066652801, -1.373258874319}},
    {"olmo2",
     {-2.379867995878, 0.511184586141, 1.878078013357, -2.077839055066, -2.576440884187,
      2.065786248413, 1.444919342227, -1.868948535690, -0.538590301696, 1.226398844608,
      2.704001939147, -1.179033981620}},
    {"normformer",
     {-1.750479015996, 1.125956321504, 0.954058307153, -0.812494501072, -2.119690309969,
      2.059145107485, 0.705558212638, -0.202051515294, -0.555268014440, 2.134676862078,
      1.624812349581, -0.541699218752}},
    {"deepnorm",
     {-1.453234914871, 1.128864163709, -0.000045977800, 0.231881048630, -1.064771865030,
      1.495470918632, -0.892504866586, 0.344530475638, -0.376409909985, 1.552998017524,
      -0.357986542911, -0.935022966995}},
    {"admin",
     {-1.398682234543, 1.125573490605, 0.184765946552, 0.001667270593, -1.168258042023,
      1.486031567031, -0.615486718809, 0.196485065567, -0.493804198844, 1.380428729680,
      0.033219983024, -1.028638822770}},
    {"rezero",
     {-1.375580126889, 0.118912689885, 0.009517832149, -0.325655605300, -1.460611085667,
      1.130226266885, -0.292142759049, 0.054838705017, 0.026525077887, 1.102339980100,
      0.705789742463, -0.020716735362}},
    {"layerscale",
     {-1.393981722715, 0.205920111521, 0.152538554024, -0.538456865808, -1.528199345293,
      1.208263449074, -0.162226299124, -0.088258813718, -0.077838926911, 1.194933550145,
      0.839560685034, -0.149534563360}},
    {"b2t",
     {-1.492304065262, 1.049203652149, 0.038051837254, 0.308932041090, -1.136802467379,
      1.396450618596, -0.897653690653, 0.514862174930, -0.456852699638, 1.544987279070,
      -0.289866887877, -0.908965249701}},
    {"residual-dual",
     {-1.396286504062, 1.107058352423, 0.222898623750, -0.020321704538, -1.144640569181,
      1.508457069127, -0.610176660307, 0.146347513454, -0.499521059510, 1.434770675229,
      -0.054187654849, -0.988867723748}},
    {"residual-dual stack",
     {-2.939935715011, 1.865431889258, 1.259126944251, 0.099391462633, -2.521159315577,
      2.737456714686, -0.408736853022, 0.459067464649, -1.436248513457, 2.639252917641,
      0.856186974067, -1.788278340806}},
    {"mix first",
     {-1.396286504062, 1.107058352423, 0.222898623750, -0.020321704538, -1.144640569181,
      1.508457069127, -0.610176660307, 0.146347513454, -0.499521059510, 1.434770675229,
      -0.054187654849, -0.988867723748}},
    {"mix",
     {-1.408006143862, 0.226651179797, 0.151160202163, -0.522340582109, -1.532371137268,
      1.227425163363, -0.164827983997, -0.066779017185, -0.085900323992, 1.219343058222,
      0.836230338187, -0.143331437567}},
    {"hybrid",
     {-1.827052150643, 0.132346484342, -0.258872526198, -0.460243491748, -1.551724712553,
      1.297967616537, -0.085542093631, -0.221458613595, -0.058611102083, 1.724520464027,
      1.249814596274, -0.351988443221}},
    {"hybrid-star first",
     {-1.494344815434, 0.074538230661, -0.142361508660, -0.359848910325, -1.613500908153,
      1.193689071387, 0.001467326982, -0.274148283159, 0.041969137678, 1.260898324093,
      0.977410300468, -0.125487554728}},
    {"hybrid-star",
     {-1.827052150643, 0.132346484342, -0.258872526198, -0.460243491748, -1.551724712553,
      1.297967616537, -0.085542093631, -0.221458613595, -0.058611102083, 1.724520464027,
      1.249814596274, -0.351988443221}},
    {"lns",
     {-1.378767664365, 0.172969610524, 0.119278021402, -0.413904006941, -1.452590737533,
      1.125454896193, -0.217602861057, 0.061663604607, -0.058340947770, 1.163645377282,
      0.777749282719, -0.067667987633}},
    {"none",
     {-1.408925966929, 0.130091267951, 0.041542723527, -0.355477500584, -1.500660339400,
      1.152912808849, -0.253987798970, 0.014762972195, -0.003064063431, 1.111283090895,
      0.743756458913, -0.045248128526}},
};

// The position in this list is part of the formula of a parameter's values.
constexpr std::string_view kNames[] = {
    "qkv/kernel",
    "qkv/bias",
    "attention_output/kernel",
    "attention_output/bias",
    "mlp_in/kernel",
    "mlp_in/bias",
    "mlp_out/kernel",
    "mlp_out/bias",
    "norm/scale",
    "norm/bias",
    "attention_norm/scale",
    "attention_norm/bias",
    "mlp_norm/scale",
    "mlp_norm/bias",
    "attention_output_norm/scale",
    "attention_output_norm/bias",
    "mlp_output_norm/scale",
    "mlp_output_norm/bias",
    "mlp_hidden_norm/scale",
    "mlp_hidden_norm/bias",
    "q_norm/scale",
    "k_norm/scale",
    "v_norm/scale",
    "head_scale",
    "attention_omega",
    "mlp_omega",
    "rezero_scale",
    "attention_lambda",
    "mlp_lambda",
    "dual_norm/scale",
    "dual_norm/bias",
};

// Small multiples of 1/32, exact in single precision; gains and scales are near 1.
void SetWeights(Probe& probe) {
  for (const Parameter& parameter : probe.parameters().all()) {
    const bool in_block = parameter.path.starts_with("block_");
    const std::string name =
        in_block ? parameter.path.substr(parameter.path.find('/') + 1) : parameter.path;
    const auto known = std::ranges::find(kNames, name);
    ASSERT_NE(known, std::end(kNames)) << name;
    const auto index = static_cast<int>(known - std::begin(kNames));
    const bool matrix_or_bias = name.ends_with("kernel") || name.ends_with("bias");
    int i = 0;
    for (float& value : probe.weights(probe.parameters().Find(parameter.path))) {
      const float w = static_cast<float>((index * 31 + i++ * 17) % 23 - 11) / 32;
      value = matrix_or_bias ? w : 1 + w / 4;
    }
  }
}

TrainingSettings SettingsOf(const std::string& placement) {
  TrainingSettings settings;
  settings.placement = placement;
  settings.layers = 3;
  settings.d_model = 4;
  settings.heads = 2;
  settings.ffn_width = 6;
  settings.mix_fraction = 0.5;
  const bool hybrid = placement.starts_with("hybrid");
  if (hybrid || placement == "olmo2") settings.norm = "rmsnorm";
  if (hybrid) settings.qk_norm = "rms-head";
  if (placement == "olmo2") settings.qk_norm = "rms-full";
  return settings;
}

TEST(PlacementGolden, EveryBlockOutputIsThatOfItsFormula) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.name);
    const TrainingSettings settings =
        SettingsOf(std::string(golden.name.substr(0, golden.name.find(' '))));
    const Placement& placement = FindPlacement(settings.placement);
    const Block block(settings, golden.name.ends_with("first") ? 0 : 1);
    std::vector<float> x;
    for (int i = 0; i < 12; ++i) x.push_back(static_cast<float>((3 * i * i + 5 * i) % 17 - 8) / 8);
    Probe probe(1, 3, 4, [&](Value input) {
      return golden.name.ends_with("stack") ? placement.RecordStack({&block, 1}, input)
                                            : placement.RecordBlock(block, input);
    });
    SetWeights(probe);
    probe.set_input(x);
    probe.Run();
    for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(probe.output()[i], golden.output[i], 4e-6) << i;
  }
}

TEST(PlacementGolden, NoPlacementIsLeftOut) {
  for (const std::string_view name : PlacementNames()) {
    EXPECT_TRUE(std::ranges::any_of(kGolden, [&](const Golden& g) { return g.name == name; }))
        << name;
  }
}

}  // namespace
}  // namespace normlab::trainer
