#include "server/storage/run_settings.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <utility>
#include <vector>

#include "server/storage/spec_json.h"

namespace normlab::storage {
namespace {

using google::protobuf::FieldDescriptor;

void BindValue(Statement& insert, const v1::RunSpec& spec, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *spec.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return insert.Bind(3, reflection.GetInt64(spec, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return insert.Bind(3, reflection.GetDouble(spec, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return insert.Bind(3, int64_t{reflection.GetBool(spec, &field)});
    default:
      return insert.Bind(3, reflection.GetString(spec, &field));
  }
}

}  // namespace

absl::Status InsertRunSettings(Database& database, std::string_view run,
                               const v1::RunSpec& effective) {
  std::vector<const FieldDescriptor*> fields;
  effective.GetReflection()->ListFields(effective, &fields);
  Statement insert =
      database.Prepared("INSERT INTO run_settings (name, run, value) VALUES (?1, ?2, ?3)");
  for (const FieldDescriptor* field : fields) {
    insert.Reset();
    insert.Bind(1, field->name());
    insert.Bind(2, run);
    BindValue(insert, effective, *field);
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  return insert.status();
}

absl::Status DeleteRunSettings(Database& database, std::string_view run) {
  // By name and run, which is the table's only order; names that no setting has any more as well.
  Statement erase = database.Prepared(
      "WITH RECURSIVE names (name) AS ("
      "  SELECT min(name) FROM run_settings"
      "  UNION ALL"
      "  SELECT (SELECT min(s.name) FROM run_settings AS s WHERE s.name > names.name) FROM names"
      "  WHERE names.name IS NOT NULL) "
      "DELETE FROM run_settings WHERE run = ?1 AND name IN (SELECT name FROM names)");
  erase.Bind(1, run);
  return erase.Run();
}

absl::Status FillRunSettings(Database& database) {
  std::vector<std::pair<std::string, v1::RunSpec>> specs;
  {
    Statement select = database.Prepared("SELECT run, effective_spec FROM run_specs");
    while (select.Step()) {
      v1::RunSpec spec;
      if (absl::Status status = SpecFromJson(select.Text(1), spec); !status.ok()) return status;
      specs.emplace_back(select.Text(0), std::move(spec));
    }
    if (!select.status().ok()) return select.status();
  }
  for (const auto& [run, spec] : specs) {
    if (absl::Status status = InsertRunSettings(database, run, spec); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace normlab::storage
