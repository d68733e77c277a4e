#include "server/trainer/link/settings.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "normlab/v1/setting.pb.h"
#include "server/base/gpu_context.h"

namespace normlab::trainer {
namespace {

using google::protobuf::FieldDescriptor;
using testing::HasSubstr;
using testing::IsEmpty;

// What SettingsFromSpec does not read, and why.
bool IsResolvedIntoAnother(const FieldDescriptor& field) {
  return field.name() == "warmup_fraction" ||  // the server makes it warmup_steps
         field.name() == "init_from" ||        // the assignment names the file
         field.options().GetExtension(v1::setting).server_only();
}

std::vector<const FieldDescriptor*> Fields() {
  const google::protobuf::Descriptor& spec = *v1::RunSpec::descriptor();
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < spec.field_count(); ++i) fields.push_back(spec.field(i));
  return fields;
}

// Sets a field to a value that no other `variant` gives.
void Set(v1::RunSpec* spec, const FieldDescriptor& field, int variant) {
  const google::protobuf::Reflection& reflection = *spec->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(spec, &field, 1000 + variant);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(spec, &field, 0.125 + variant);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(spec, &field, variant != 0);
    case FieldDescriptor::CPPTYPE_STRING: {
      const v1::Setting& setting = field.options().GetExtension(v1::setting);
      std::vector<std::string> choices(setting.choices().begin(), setting.choices().end());
      std::erase(choices, "auto");
      if (choices.empty()) choices = {"one text", "another"};
      return reflection.SetString(spec, &field, choices.at(variant));
    }
    default:
      FAIL() << "the test does not know the type of " << field.name();
  }
}

v1::RunSpec EffectiveSpec() {
  v1::RunSpec spec;
  for (const FieldDescriptor* field : Fields()) Set(&spec, *field, 0);
  return spec;
}

// The structured binding stops compiling when trainer.h gains a member: add it here, and in
// settings.cc.
// clang-format off
#define NORMLAB_MEMBERS \
  model, placement, norm, norm_epsilon, norm_gain, dyt_alpha, final_norm, qk_norm, \
  residual_scale, mix_fraction, layerscale_init, layers, decoder_layers, d_model, \
  heads, ffn_width, ffn, activation, experts, capacity_factor, switch_overflow, \
  balance_coefficient, attention, causal, bias, positions, tie_embeddings, \
  memory_length, table_length, init, init_file, allow_missing, vocab_size, \
  sequence_length, data, text_file, text_unit, text_order, validation_fraction, \
  validate_every, batch_size, accumulate, steps, dropout, optimizer, momentum, \
  learning_rate, schedule, warmup_steps, learning_rate_floor, beta1, beta2, epsilon, \
  weight_decay, decay_parameters, clip_norm, seed, precision, threads, \
  stop_on_non_finite, device, cuda_graph, gpu_memory_bytes, gpu_context_bytes, \
  diagnose_every, diagnose_tensors, probe_every, \
  checkpoint_every, checkpoint_seconds, keep_checkpoints, checkpoint_directory, resume_from, \
  step_limit
// clang-format on

template <typename... Members>
std::vector<std::string> Texts(const Members&... members) {
  const auto text = [](const auto& value) {
    if constexpr (requires { std::to_string(value); }) {
      return std::to_string(value);
    } else {
      return std::string(value);
    }
  };
  return {text(members)...};
}

// Every member as text.
std::vector<std::string> Members(const TrainingSettings& settings) {
  const auto& [NORMLAB_MEMBERS] = settings;
  return Texts(NORMLAB_MEMBERS);
}

#define NORMLAB_QUOTE(...) #__VA_ARGS__
#define NORMLAB_QUOTE_LIST(list) NORMLAB_QUOTE(list)

std::vector<std::string> MemberNames() {
  return absl::StrSplit(NORMLAB_QUOTE_LIST((NORMLAB_MEMBERS)), absl::ByAnyChar("(), "),
                        absl::SkipEmpty());
}

// Which members differ, by position.
std::vector<size_t> Changes(const TrainingSettings& a, const TrainingSettings& b) {
  const std::vector<std::string> left = Members(a);
  const std::vector<std::string> right = Members(b);
  std::vector<size_t> changes;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] != right[i]) changes.push_back(i);
  }
  return changes;
}

TEST(SettingsTest, EveryFieldOfTheSpecReachesAMemberOfItsOwn) {
  const absl::StatusOr<TrainingSettings> base = SettingsFromSpec(EffectiveSpec());
  ASSERT_TRUE(base.ok()) << base.status();
  std::vector<std::string> taken(Members(*base).size());
  for (const FieldDescriptor* field : Fields()) {
    v1::RunSpec spec = EffectiveSpec();
    Set(&spec, *field, 1);
    const absl::StatusOr<TrainingSettings> changed = SettingsFromSpec(spec);
    ASSERT_TRUE(changed.ok()) << changed.status();
    const std::vector<size_t> changes = Changes(*base, *changed);
    if (IsResolvedIntoAnother(*field)) {
      EXPECT_THAT(changes, IsEmpty()) << field->name();
      continue;
    }
    ASSERT_EQ(changes.size(), 1U) << field->name() << " is forgotten in settings.cc";
    EXPECT_EQ(taken[changes[0]], "") << field->name() << " goes where another one goes";
    taken[changes[0]] = field->name();
  }
  // The files are named by the assignment, not by the spec, and the device is chosen by it, as are
  // its memory and the step at which a limit is reached.
  const auto given =
      testing::AnyOf("init_file", "text_file", "checkpoint_directory", "resume_from", "device",
                     "gpu_memory_bytes", "gpu_context_bytes", "step_limit");
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i].empty()) continue;
    EXPECT_THAT(MemberNames()[i], given) << "a member of TrainingSettings has no field";
  }
}

TEST(SettingsTest, AbsentFieldIsNamed) {
  for (const FieldDescriptor* field : Fields()) {
    v1::RunSpec spec = EffectiveSpec();
    spec.GetReflection()->ClearField(&spec, field);
    const absl::StatusOr<TrainingSettings> settings = SettingsFromSpec(spec);
    EXPECT_EQ(settings.ok(), IsResolvedIntoAnother(*field)) << field->name();
    if (settings.ok()) continue;
    EXPECT_THAT(settings.status().ToString(), HasSubstr(field->name()));
  }
}

TEST(SettingsTest, AutoIsNotAValueForTheEngine) {
  for (const FieldDescriptor* field : Fields()) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
    if (IsResolvedIntoAnother(*field)) continue;
    v1::RunSpec spec = EffectiveSpec();
    spec.GetReflection()->SetString(&spec, field, "auto");
    EXPECT_FALSE(SettingsFromSpec(spec).ok()) << field->name();
  }
}

TEST(SettingsTest, FinalNormIsOnOrOff) {
  v1::RunSpec spec = EffectiveSpec();
  spec.set_final_norm("on");
  EXPECT_TRUE(SettingsFromSpec(spec)->final_norm);
  spec.set_final_norm("off");
  EXPECT_FALSE(SettingsFromSpec(spec)->final_norm);
  spec.set_final_norm("yes");
  EXPECT_FALSE(SettingsFromSpec(spec).ok());
}

TEST(SettingsTest, AGpuOfTheServerIsTheOneGpuThatTheTrainerSees) {
  worker::v1::Assignment assignment;
  *assignment.mutable_effective_spec() = EffectiveSpec();
  for (const auto& [device, expected] :
       {std::pair{"cpu:2", "cpu"}, {"gpu:0", "cuda"}, {"gpu:3", "cuda"}}) {
    assignment.set_device(device);
    const absl::StatusOr<TrainingSettings> settings = SettingsFromAssignment(assignment);
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->device, expected);
  }
}

TEST(SettingsTest, TheMemoryThatItMayUseIsThatOfAGpu) {
  worker::v1::Assignment assignment;
  *assignment.mutable_effective_spec() = EffectiveSpec();
  assignment.set_gpu_memory_bytes(int64_t{8} << 30);
  assignment.set_device("gpu:1");
  EXPECT_EQ(SettingsFromAssignment(assignment)->gpu_memory_bytes, int64_t{8} << 30);
  EXPECT_EQ(SettingsFromAssignment(assignment)->gpu_context_bytes, kGpuContextBytes);
  assignment.set_device("cpu:1");
  EXPECT_EQ(SettingsFromAssignment(assignment)->gpu_memory_bytes, 0);
}

}  // namespace
}  // namespace normlab::trainer
