#include "server/http/json_check.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/http/text.h"

namespace normlab::http {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;

// A number, or the text of one.
std::optional<double> NumberOf(const json& value) {
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? ToDouble(value.get_ref<const std::string&>()) : std::nullopt;
}

class Checker {
 public:
  void Object(const json& object, const Descriptor& type, const std::string& prefix);
  std::vector<domain::FieldViolation> violations;

 private:
  void Field(const json& value, const FieldDescriptor& field, const std::string& path);
  void Value(const json& value, const FieldDescriptor& field, const std::string& path);
  void Integer(const json& value, double smallest, double beyond, const std::string& path);
  void Number(const json& value, const std::string& path);
  void Message(const json& value, const Descriptor& type, const std::string& path);
  void Fault(const std::string& path, std::string description) {
    violations.push_back({path, std::move(description)});
  }
};

const FieldDescriptor* FindField(const Descriptor& type, const std::string& name) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (field->name() == name || field->json_name() == name) return field;
  }
  return nullptr;
}

std::vector<std::string> FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.emplace_back(type.field(i)->name());
  return names;
}

// The value for a message: short, whatever was sent.
std::string Shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump();
  if (text.size() <= 40) return text;
  return value.is_string() ? "a long text" : text.substr(0, 40) + "...";
}

void Checker::Object(const json& object, const Descriptor& type, const std::string& prefix) {
  std::set<int> seen;
  for (const auto& [name, value] : object.items()) {
    // Nobody mends more at once, and an answer must not be larger than what it answers.
    if (violations.size() >= 50) return;
    const FieldDescriptor* field = FindField(type, name);
    if (field == nullptr) {
      Fault(prefix + Shortened(name, 100), "no such field" + DidYouMean(name, FieldNames(type)));
      continue;
    }
    const std::string path = prefix + std::string(field->name());
    if (!seen.insert(field->number()).second) {
      Fault(path, "given in both spellings");
    } else if (!value.is_null()) {  // null is absent, as proto3 JSON has it
      Field(value, *field, path);
    }
  }
}

void Checker::Field(const json& value, const FieldDescriptor& field, const std::string& path) {
  if (!field.is_repeated()) return Value(value, field, path);
  if (!value.is_array()) return Fault(path, Shown(value) + " is not a list");
  for (size_t i = 0; i < value.size() && violations.size() < 50; ++i) {
    Value(value[i], field, fmt::format("{}[{}]", path, i));
  }
}

void Checker::Value(const json& value, const FieldDescriptor& field, const std::string& path) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return Integer(value, -0x1p31, 0x1p31, path);
    case FieldDescriptor::CPPTYPE_INT64:
      return Integer(value, -0x1p63, 0x1p63, path);
    case FieldDescriptor::CPPTYPE_UINT32:
      return Integer(value, 0, 0x1p32, path);
    case FieldDescriptor::CPPTYPE_UINT64:
      return Integer(value, 0, 0x1p64, path);
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Number(value, path);
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!value.is_boolean()) {
        Fault(path, Shown(value) + " is neither true nor false");
      }
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      if (!value.is_string()) Fault(path, Shown(value) + " is not a text");
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      if (!value.is_number_integer() &&
          !(value.is_string() && field.enum_type()->FindValueByName(value.get<std::string>()))) {
        Fault(path, Shown(value) + " is not one of its values, such as " +
                        std::string(field.enum_type()->value(1)->name()));
      }
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Message(value, *field.message_type(), path);
  }
}

// 64-bit numbers may come as texts, as proto3 JSON prints them, and 1e9 is as whole as 1000000000.
void Checker::Integer(const json& value, double smallest, double beyond, const std::string& path) {
  const double number = NumberOf(value).value_or(std::numeric_limits<double>::quiet_NaN());
  // As doubles the bounds are exact, and so is a comparison with them, but for the largest 64-bit
  // numbers, which protobuf's parser then judges.
  if (std::trunc(number) != number) {
    Fault(path, Shown(value) + " is not a whole number");
  } else if (number < smallest || number > beyond) {
    Fault(path, Shown(value) + " is out of range");
  }
}

void Checker::Number(const json& value, const std::string& path) {
  if (!NumberOf(value)) Fault(path, Shown(value) + " is not a number");
}

void Checker::Message(const json& value, const Descriptor& type, const std::string& path) {
  if (type.full_name() == "google.protobuf.Timestamp") {
    if (!value.is_string()) Fault(path, Shown(value) + " is not a time");
  } else if (!value.is_object()) {
    Fault(path, Shown(value) + " is not an object");
  } else {
    Object(value, type, path + ".");
  }
}

}  // namespace

std::vector<domain::FieldViolation> CheckJson(const nlohmann::json& object, const Descriptor& type,
                                              std::string_view prefix) {
  Checker checker;
  checker.Object(object, type, std::string(prefix));
  return std::move(checker.violations);
}

}  // namespace normlab::http
