// Settings as the database has them.
#include "server/storage/spec_json.h"

#include <google/protobuf/util/json_util.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/domain/spec.h"

namespace normlab::storage {
namespace {

using google::protobuf::FieldDescriptor;

// As protobuf itself reads it.
v1::RunSpec Plain(const std::string& json) {
  v1::RunSpec spec;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &spec, options);
  EXPECT_TRUE(status.ok()) << status.ToString() << json;
  return spec;
}
std::string Plain(const v1::RunSpec& spec) {
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(spec, &json).ok());
  return json;
}
v1::RunSpec Read(const std::string& json) {
  v1::RunSpec spec;
  const absl::Status status = SpecFromJson(json, spec);
  EXPECT_TRUE(status.ok()) << status << json;
  return spec;
}
// Bit by bit, which a comparison of doubles is not.
std::string Bits(const v1::RunSpec& spec) { return spec.SerializeAsString(); }

// Any value of any setting: what is sensible is checked elsewhere.
v1::RunSpec RandomSpec(std::mt19937_64& random) {
  static const std::vector<double> doubles = {0.0,
                                              -0.0,
                                              1.0 / 3,
                                              5e-324,
                                              1e300,
                                              -2,
                                              1e22,
                                              123456789012345678.0,
                                              0.002,
                                              std::numeric_limits<double>::infinity(),
                                              std::numeric_limits<double>::quiet_NaN()};
  static const std::vector<std::string> texts = {"", "post", "a \"text\"\n", "caf\xC3\xA9", "\x7f"};
  v1::RunSpec spec;
  const google::protobuf::Reflection& reflection = *spec.GetReflection();
  for (int i = 0; i < v1::RunSpec::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *v1::RunSpec::descriptor()->field(i);
    const uint64_t drawn = random();
    if (drawn % 3 == 0) continue;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        reflection.SetInt64(&spec, &field, std::bit_cast<int64_t>(drawn) >> drawn % 60);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        reflection.SetDouble(&spec, &field, doubles[drawn % doubles.size()]);
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection.SetBool(&spec, &field, drawn % 2 == 0);
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        reflection.SetString(&spec, &field, texts[drawn % texts.size()]);
        break;
      default:
        ADD_FAILURE() << field.name() << " is of a type that no setting had";
    }
  }
  return spec;
}

TEST(SpecJsonTest, IsWhatProtobufWritesAndReads) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    const v1::RunSpec spec = RandomSpec(random);
    const absl::StatusOr<std::string> json = SpecToJson(spec);
    ASSERT_TRUE(json.ok());
    EXPECT_EQ(*json, Plain(spec));
    EXPECT_EQ(Bits(Read(*json)), Bits(Plain(*json)));
  }
  const v1::RunSpec effective = domain::EffectiveSpec({});
  EXPECT_EQ(Bits(Read(SpecToJson(effective).value())), Bits(effective));
}

// By hand, or by other programs.
TEST(SpecJsonTest, WhatIsWrittenAnotherWayIsReadAsProtobufDoes) {
  for (const char* json :
       {"{}", "{\"layers\": 3}", "{\"d_model\": \"32\"}", "{\"learningRate\": \"NaN\"}",
        "{\"learningRate\": \"1e-3\"}", "{\"learningRate\": -0}", "{\"seed\": 1e3}",
        "{\"layers\": null}", "{\"ofANewerProgram\": {\"x\": [1]}, \"layers\": \"2\"}"}) {
    EXPECT_EQ(Bits(Read(json)), Bits(Plain(json))) << json;
  }
}

TEST(SpecJsonTest, WhatCannotBeReadIsAnErrorAndNothingIsSet) {
  for (const char* json : {"", "{", "{\"layers\": \"many\"}", "{\"normGain\": []}"}) {
    v1::RunSpec spec;
    EXPECT_TRUE(absl::IsDataLoss(SpecFromJson(json, spec))) << json << spec.DebugString();
  }
}

}  // namespace
}  // namespace normlab::storage
