#include "server/app/audit_lines.h"

#include <vector>

#include "server/base/strings.h"
#include "server/domain/run_state.h"
#include "server/domain/settings.h"

namespace normlab::app {
namespace {

std::string GivenSettings(const v1::RunSpec& spec) {
  std::vector<const google::protobuf::FieldDescriptor*> given;
  v1::RunSpec::GetReflection()->ListFields(spec, &given);
  std::string text;
  for (const auto* field : given) {
    StrAppend(&text, text.empty() ? "" : " ", field->name(), "=",
              domain::ValueText(spec, field->name()));
  }
  return text;
}

std::string Joined(const google::protobuf::RepeatedPtrField<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) StrAppend(&text, text.empty() ? "" : ", ", label);
  return text;
}

std::string Joined(const google::protobuf::RepeatedPtrField<v1::Dependency>& after) {
  std::string text;
  for (const v1::Dependency& one : after) {
    StrAppend(&text, text.empty() ? "" : ", ", one.run(), ":", one.condition());
  }
  return text;
}

std::string Flag(bool value) { return value ? "true" : "false"; }

}  // namespace

storage::AuditLine CreationLine(const v1::Run& run) {
  const std::string given = GivenSettings(run.spec());
  return {"create", run.id(), run.experiment(),
          StrCat("\"", run.display_name(), "\"", given.empty() ? "" : ": ", given)};
}

storage::AuditLine CreationLine(const v1::Experiment& experiment, size_t runs) {
  return {"create", "", experiment.id(),
          StrCat("\"", experiment.display_name(), "\": ", runs, runs == 1 ? " run" : " runs",
                 experiment.preset().empty() ? "" : ", preset ", experiment.preset())};
}

storage::AuditLine StateLine(std::string_view action, const v1::Run& run, v1::Run::State before) {
  return {std::string(action), run.id(), "",
          StrCat(domain::StateWord(before), " -> ", domain::StateWord(run.state()))};
}

storage::AuditLine DescriptionLine(const v1::Run& before, const v1::Run& after) {
  std::string text;
  const auto add = [&text](std::string_view what, const std::string& from, const std::string& to) {
    if (from == to) return;
    StrAppend(&text, text.empty() ? "" : "; ", storage::ChangeText(what, from, to));
  };
  add("display_name", before.display_name(), after.display_name());
  add("labels", Joined(before.labels()), Joined(after.labels()));
  add("notes", before.notes(), after.notes());
  add("pinned", Flag(before.pinned()), Flag(after.pinned()));
  add("priority", before.priority(), after.priority());
  add("after", Joined(before.after()), Joined(after.after()));
  add("archived", Flag(before.archived()), Flag(after.archived()));
  return {"update", after.id(), "", text};
}

}  // namespace normlab::app
