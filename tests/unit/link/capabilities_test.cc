#include "server/trainer/link/capabilities.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace normlab::trainer {
namespace {

TEST(CapabilitiesTest, OneLineOfJsonSaysOnHowManyGpusItTrains) {
  setenv("NORMLAB_FAKE_ENGINE", "gpus=2", 1);
  const std::string text = CapabilitiesText();
  unsetenv("NORMLAB_FAKE_ENGINE");
  EXPECT_EQ(text.find('\n'), text.npos);
  const nlohmann::json said = nlohmann::json::parse(text);
  EXPECT_EQ(said.at("gpus"), 2);
  EXPECT_EQ(said.at("engine"), "fake");
  EXPECT_EQ(nlohmann::json::parse(CapabilitiesText()).at("gpus"), 0);
}

}  // namespace
}  // namespace normlab::trainer
