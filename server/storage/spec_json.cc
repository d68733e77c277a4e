#include "server/storage/spec_json.h"

#include <google/protobuf/type.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "absl/strings/numbers.h"
#include "server/base/mutex.h"
#include "server/base/strings.h"

namespace normlab::storage {
namespace {

using google::protobuf::FieldDescriptor;

constexpr char kUrlPrefix[] = "type.googleapis.com";

// What protobuf's conversions must know of messages. Its own resolver describes them anew for each
// conversion, with the options of every field (what settings are called, their ranges, their help),
// which takes many times as long as the conversion itself. This one remembers. Thread-safe.
class Types : public google::protobuf::util::TypeResolver {
  using Status = decltype(std::declval<google::protobuf::util::TypeResolver&>().ResolveMessageType(
      std::string(), nullptr));

 public:
  Status ResolveMessageType(const std::string& url, google::protobuf::Type* type) override
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    const auto [found, added] = types_.try_emplace(url);
    if (added) {
      const Status status = resolver_->ResolveMessageType(url, &found->second);
      if (!status.ok()) {
        types_.erase(found);
        return status;
      }
      for (google::protobuf::Field& field : *found->second.mutable_fields()) field.clear_options();
    }
    *type = found->second;
    return Status();
  }
  Status ResolveEnumType(const std::string& url, google::protobuf::Enum* type) override {
    return resolver_->ResolveEnumType(url, type);
  }

 private:
  const std::unique_ptr<google::protobuf::util::TypeResolver> resolver_{
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          kUrlPrefix, google::protobuf::DescriptorPool::generated_pool())};
  Mutex mutex_;
  std::map<std::string, google::protobuf::Type> types_ ABSL_GUARDED_BY(mutex_);
};

Types& KnownTypes() {
  static Types types;
  return types;
}

std::string UrlOf(const google::protobuf::Message& message) {
  return StrCat(kUrlPrefix, "/", message.GetTypeName());
}

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      &KnownTypes(), UrlOf(message), message.SerializeAsString(), &json);
  if (!status.ok()) return absl::InternalError(status.ToString());
  return json;
}

absl::Status FromJson(const std::string& json, google::protobuf::Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  std::string binary;
  const auto status = google::protobuf::util::JsonToBinaryString(&KnownTypes(), UrlOf(message),
                                                                 json, &binary, options);
  if (!status.ok()) return absl::DataLossError(status.ToString());
  return message.ParseFromString(binary) ? absl::OkStatus()
                                         : absl::DataLossError("settings cannot be read");
}

// By their names in JSON.
const std::unordered_map<std::string, const FieldDescriptor*>& Settings() {
  static const auto& settings = *[] {
    auto* const made = new std::unordered_map<std::string, const FieldDescriptor*>();
    const google::protobuf::Descriptor& spec = *v1::RunSpec::descriptor();
    for (int i = 0; i < spec.field_count(); ++i) {
      made->emplace(spec.field(i)->json_name(), spec.field(i));
    }
    return made;
  }();
  return settings;
}

// False when it is not written as ToJson writes it.
bool SetSetting(const nlohmann::json& value, const FieldDescriptor& field, v1::RunSpec& spec) {
  const google::protobuf::Reflection& reflection = *spec.GetReflection();
  switch (field.is_repeated() ? FieldDescriptor::CPPTYPE_MESSAGE : field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t number = 0;
      const auto* const text = value.get_ptr<const std::string*>();
      if (text == nullptr || !absl::SimpleAtoi(*text, &number)) return false;
      reflection.SetInt64(&spec, &field, number);
      return true;
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      // -0 would be read as an integer, without its sign.
      if (!value.is_number() || (value == 0 && !value.is_number_unsigned())) return false;
      reflection.SetDouble(&spec, &field, value.get<double>());
      return true;
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!value.is_boolean()) return false;
      reflection.SetBool(&spec, &field, value.get<bool>());
      return true;
    case FieldDescriptor::CPPTYPE_STRING:
      if (!value.is_string()) return false;
      reflection.SetString(&spec, &field, value.get<std::string>());
      return true;
    default:
      return false;
  }
}

// Settings are flat, and are read whenever a run is: this takes a fraction of the time that
// protobuf's conversion does. False, and nothing is set, when the text is not as ToJson writes it.
bool ReadPlainSpec(const std::string& json, v1::RunSpec& spec) {
  const nlohmann::json read = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!read.is_object()) return false;
  v1::RunSpec made;
  for (const auto& [name, value] : read.items()) {
    const auto setting = Settings().find(name);
    if (setting == Settings().end()) {
      if (v1::RunSpec::descriptor()->FindFieldByName(name) != nullptr) return false;
      continue;  // of a newer program
    }
    if (!SetSetting(value, *setting->second, made)) return false;
  }
  spec = std::move(made);
  return true;
}

}  // namespace

absl::StatusOr<std::string> SpecToJson(const v1::RunSpec& spec) { return ToJson(spec); }
absl::StatusOr<std::string> SweepToJson(const v1::Sweep& sweep) { return ToJson(sweep); }

absl::Status SpecFromJson(const std::string& json, v1::RunSpec& spec) {
  return ReadPlainSpec(json, spec) ? absl::OkStatus() : FromJson(json, spec);
}
absl::Status SweepFromJson(const std::string& json, v1::Sweep& sweep) {
  return FromJson(json, sweep);
}

}  // namespace normlab::storage
