#include "server/http/json_body.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "normlab/v1/run.pb.h"
#include "normlab/v1/run_service.pb.h"
#include "server/domain/violations.h"

namespace normlab::http {
namespace {

using domain::FieldViolation;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<FieldViolation> Faults(std::string_view body) {
  v1::Run run;
  const absl::Status status = FromJson(body, run);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << body;
  return domain::Violations(status);
}

std::string Message(std::string_view body) {
  v1::Run run;
  return std::string(FromJson(body, run).message());
}

TEST(FromJson, TakesBothSpellings) {
  v1::Run run;
  ASSERT_TRUE(FromJson(R"({"displayName":"é","spec":{"batch_size":3,"learningRate":0.5,"seed":"7",
                          "layers":1e1,"stopOnNonFinite":false,"warmup_steps":0}})",
                       run)
                  .ok());
  EXPECT_EQ(run.display_name(), "é");
  EXPECT_EQ(run.spec().batch_size(), 3);
  EXPECT_EQ(run.spec().learning_rate(), 0.5);
  EXPECT_EQ(run.spec().seed(), 7);
  EXPECT_EQ(run.spec().layers(), 10);
  EXPECT_TRUE(run.spec().has_stop_on_non_finite());
  EXPECT_TRUE(run.spec().has_warmup_steps());
  EXPECT_FALSE(run.spec().has_steps());
}

TEST(FromJson, NullIsAbsent) {
  v1::Run run;
  ASSERT_TRUE(FromJson(R"({"spec":{"layers":null}})", run).ok());
  EXPECT_FALSE(run.spec().has_layers());
}

TEST(FromJson, LeavesNonFiniteNumbersToTheValidation) {
  v1::Run run;
  ASSERT_TRUE(FromJson(R"({"spec":{"learningRate":"NaN","epsilon":"-Infinity"}})", run).ok());
  EXPECT_TRUE(std::isnan(run.spec().learning_rate()));
  EXPECT_TRUE(std::isinf(run.spec().epsilon()));
}

TEST(FromJson, NamesEveryUnknownFieldAndTheNearest) {
  EXPECT_THAT(
      Faults(R"({"spec":{"layer":3,"pace":1},"displayname":"x","bright":"red"})"),
      ElementsAre(FieldViolation{"bright", "no such field"},
                  FieldViolation{"displayname", "no such field, did you mean display_name?"},
                  FieldViolation{"spec.layer", "no such field, did you mean layers?"},
                  FieldViolation{"spec.pace", "no such field"}));
}

TEST(FromJson, AnswersAFloodOfFaultsBriefly) {
  std::string body = "{\"" + std::string(1000, 'x') + "\":1";
  for (int i = 0; i < 50000; ++i) body += ",\"k" + std::to_string(i) + "\":1";
  const std::vector<FieldViolation> faults = Faults(body + "}");
  EXPECT_EQ(faults.size(), 50u);
  for (const FieldViolation& fault : faults) EXPECT_LT(fault.field.size(), 110u);
}

TEST(FromJson, NamesEveryWrongType) {
  EXPECT_THAT(
      Faults(R"({"displayName":5,"spec":{"layers":"many","heads":2.5,"d_model":[1],
                        "batch_size":1e300,"placement":1,"learning_rate":"fast",
                        "stop_on_non_finite":1,"seed":{"a":1},"steps":true}})"),
      ElementsAre(FieldViolation{"display_name", "5 is not a text"},
                  FieldViolation{"spec.batch_size", "1e+300 is out of range"},
                  FieldViolation{"spec.d_model", "a list is not a whole number"},
                  FieldViolation{"spec.heads", "2.5 is not a whole number"},
                  FieldViolation{"spec.layers", "\"many\" is not a whole number"},
                  FieldViolation{"spec.learning_rate", "\"fast\" is not a number"},
                  FieldViolation{"spec.placement", "1 is not a text"},
                  FieldViolation{"spec.seed", "an object is not a whole number"},
                  FieldViolation{"spec.steps", "true is not a whole number"},
                  FieldViolation{"spec.stop_on_non_finite", "1 is neither true nor false"}));
  EXPECT_THAT(Faults(R"({"spec":[],"attempts":{},"state":"RUNING","createTime":5})"),
              ElementsAre(FieldViolation{"attempts", "an object is not a list"},
                          FieldViolation{"create_time", "5 is not a time"},
                          FieldViolation{"spec", "a list is not an object"},
                          FieldViolation{"state",
                                         "\"RUNING\" is not one of its values, such as "
                                         "STATE_QUEUED"}));
  EXPECT_THAT(Faults(R"({"attempts":[{"number":3000000000},null]})"),
              ElementsAre(FieldViolation{"attempts[0].number", "3000000000 is out of range"},
                          FieldViolation{"attempts[1]", "null is not an object"}));
  EXPECT_THAT(Faults(R"({"display_name":"a","displayName":"b"})"),
              ElementsAre(FieldViolation{"display_name", "given in both spellings"}));
}

TEST(FromJson, LargestIntegersAreExactOrRefused) {
  v1::Run run;
  ASSERT_TRUE(FromJson(R"({"spec":{"seed":9223372036854775807}})", run).ok());
  EXPECT_EQ(run.spec().seed(), 9223372036854775807);
  EXPECT_FALSE(FromJson(R"({"spec":{"seed":9223372036854775808}})", run).ok());
}

TEST(FromJson, SaysWhereJsonIsMalformed) {
  EXPECT_THAT(Message(R"({"spec":{)"), HasSubstr("malformed JSON: parse error at line 1"));
  EXPECT_THAT(Message("{\"a\":\xff}"), HasSubstr("malformed JSON"));
  EXPECT_THAT(Message("{'a':1}"), HasSubstr("malformed JSON"));
  EXPECT_THAT(Message("{} x"), HasSubstr("malformed JSON"));
  EXPECT_THAT(Message("{\"spec\":{\"epsilon\":1e999}}"), HasSubstr("malformed JSON"));
  EXPECT_THAT(Message(std::string(900000, '[')), HasSubstr("malformed JSON"));
  EXPECT_THAT(Message(" \n"), HasSubstr("empty"));
  EXPECT_THAT(Message("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(Message("null"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(Message(R"({"createTime":"yesterday"})"), Not(HasSubstr("malformed")));
}

TEST(ToJson, PrintsPlainFieldsAlwaysAndOptionalOnesWhenSet) {
  v1::Run run;
  run.set_id("R");
  run.mutable_spec()->set_layers(0);
  run.mutable_summary()->set_final_loss(std::nan(""));
  const auto json = nlohmann::json::parse(ToJson(run));
  EXPECT_EQ(json["waitReason"], "");
  EXPECT_EQ(json["attempts"], nlohmann::json::array());
  EXPECT_EQ(json["spec"], (nlohmann::json{{"layers", "0"}}));
  EXPECT_EQ(json["summary"]["finalLoss"], "NaN");
  EXPECT_FALSE(json["summary"].contains("minLoss"));
  EXPECT_FALSE(json.contains("exitCode"));
  EXPECT_EQ(ToJson(v1::ListRunsResponse()), R"({"runs":[],"nextPageToken":"","totalSize":"0"})");
}

TEST(ToJson, ReadsBackAsTheSame) {
  v1::Run run;
  run.set_id("R");
  run.set_display_name("quotes \" and \n lines");
  run.mutable_spec()->set_learning_rate(2e-3);
  run.mutable_spec()->set_seed(9007199254740993);
  run.mutable_create_time()->set_seconds(1700000000);
  run.set_state(v1::Run::STATE_RUNNING);
  v1::Run back;
  ASSERT_TRUE(FromJson(ToJson(run), back).ok());
  EXPECT_EQ(back.SerializeAsString(), run.SerializeAsString());
}

}  // namespace
}  // namespace normlab::http
