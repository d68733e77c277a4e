#include "server/trainer/model/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/trainer/model/initialization.h"
#include "server/trainer/model/model.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {
namespace {

TrainingSettings Settings(const std::string& placement, int64_t seed = 7, int64_t layers = 12,
                          int64_t width = 64) {
  TrainingSettings settings;
  settings.placement = placement;
  settings.final_norm = placement == "pre";
  settings.seed = seed;
  settings.layers = layers;
  settings.d_model = width;
  settings.ffn_width = 4 * width;
  return settings;
}

ParameterTable TableOf(const TrainingSettings& settings) {
  ParameterTable table;
  Program program(table, settings.batch_size, settings.sequence_length);
  RecordModel(settings, program);
  return table;
}

// FNV-1a over the bytes of all tensors in the byte order of their paths.
uint64_t Checksum(const ParameterTable& table, const std::vector<float>& buffer) {
  std::vector<Parameter> sorted = table.all();
  std::ranges::sort(sorted, {}, &Parameter::path);
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Parameter& parameter : sorted) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(buffer.data() + parameter.offset);
    for (size_t i = 0; i < static_cast<size_t>(parameter.count) * sizeof(float); ++i) {
      hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
  }
  return hash;
}

uint64_t InitialChecksum(const TrainingSettings& settings) {
  const ParameterTable table = TableOf(settings);
  std::vector<float> buffer(static_cast<size_t>(table.buffer_size()));
  InitializeParameters(settings, table, buffer);
  return Checksum(table, buffer);
}

TEST(Parameters, InitialWeightsAreThoseOfFlaxBitForBit) {
  EXPECT_EQ(InitialChecksum(Settings("pre")), 0xe7187be39aaef05du);
  EXPECT_EQ(InitialChecksum(Settings("post")), 0xfdf098faa4266a5du);
  EXPECT_EQ(InitialChecksum(Settings("pre", 11)), 0xfa5b4c8a7765877cu);
  EXPECT_EQ(InitialChecksum(Settings("post", 11)), 0xd18b50699193457cu);
  EXPECT_EQ(InitialChecksum(Settings("pre", 7, 3)), 0x246e56596a8342d4u);
  EXPECT_EQ(InitialChecksum(Settings("pre", 7, 12, 48)), 0xded7b4558141f791u);
  EXPECT_EQ(InitialChecksum(Settings("post", 11, 3, 48)), 0xfb42552e6b33ee07u);
}

TEST(Parameters, InitialisingTheArticlesModelTakesLessThanATenthOfASecond) {
  const TrainingSettings settings = Settings("pre");
  const ParameterTable table = TableOf(settings);
  std::vector<float> buffer(static_cast<size_t>(table.buffer_size()));
  const std::clock_t start = std::clock();  // processor time: the machine may be busy
  InitializeParameters(settings, table, buffer);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 0.1);
}

TEST(Parameters, DeclaringAPathTwiceFindsTheSameParameter) {
  ParameterTable table;
  const auto first = table.Declare("a/kernel", {2, 3}, Initializer::Constant(1));
  EXPECT_EQ(table.Declare("a/kernel", {2, 3}, Initializer::Constant(1)), first);
  EXPECT_THROW(table.Declare("a/kernel", {3, 2}, Initializer::Constant(1)), std::runtime_error);
  EXPECT_EQ(table.parameter_count(), 6);
}

}  // namespace
}  // namespace normlab::trainer
