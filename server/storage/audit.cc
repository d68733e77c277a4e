#include "server/storage/audit.h"

#include <google/protobuf/util/time_util.h>

#include <string_view>

#include "server/base/strings.h"

namespace normlab::storage {
namespace {

constexpr size_t kLongestValue = 60;  // bytes, in a ChangeText
constexpr char kEllipsis[] = "…";

// At most `limit` bytes and the sign for more, cut between characters.
std::string Cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return StrCat(text.substr(0, end), kEllipsis);
}

}  // namespace

std::string ChangeText(std::string_view what, std::string_view from, std::string_view to) {
  return StrCat(what, ": \"", Cut(from, kLongestValue), "\" -> \"", Cut(to, kLongestValue), "\"");
}

absl::Status WriteAudit(WriteContext& context, const domain::Actor& who, const AuditLine& line) {
  Statement insert = context.database.Prepared(
      "INSERT INTO audit (time, user_name, origin, action, run, subject, detail, owner) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(nullif(?8, ''), "
      "(SELECT user_name FROM runs WHERE id = ?5), "
      "(SELECT user_name FROM experiments WHERE id = ?6), ''))");
  insert.Bind(1, context.wall_micros);
  insert.Bind(2, who.user);
  insert.Bind(3, who.origin);
  insert.Bind(4, line.action);
  insert.Bind(5, line.run);
  insert.Bind(6, line.subject);
  insert.Bind(7, Cut(line.detail, kLongestAuditDetail));
  insert.Bind(8, line.owner);
  return insert.Run();
}

absl::StatusOr<std::vector<v1::AuditEvent>> ReadAudit(Database& database, const AuditQuery& query) {
  // Put together, so that each question finds its index. run <> '' is what the index of runs has.
  std::string sql =
      "SELECT id, time, user_name, origin, action, run, subject, detail FROM audit WHERE ";
  sql += query.before > 0 ? "id < ?1" : "?1 = ?1";
  if (!query.run.empty()) sql += " AND run = ?2 AND run <> ''";
  if (!query.user.empty()) sql += " AND user_name = ?3";
  if (!query.reader.empty()) sql += " AND (owner = ?4 OR user_name = ?4)";
  sql += " ORDER BY id DESC LIMIT ?5";
  Statement select = database.Once(sql);
  select.Bind(1, query.before);
  if (!query.run.empty()) select.Bind(2, query.run);
  if (!query.user.empty()) select.Bind(3, query.user);
  if (!query.reader.empty()) select.Bind(4, query.reader);
  select.Bind(5, int64_t{query.limit});
  std::vector<v1::AuditEvent> events;
  while (select.Step()) {
    v1::AuditEvent& event = events.emplace_back();
    event.set_id(select.Integer(0));
    *event.mutable_time() =
        google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(select.Integer(1));
    event.set_user(select.Text(2));
    event.set_origin(select.Text(3));
    event.set_action(select.Text(4));
    event.set_run(select.Text(5));
    event.set_subject(select.Text(6));
    event.set_detail(select.Text(7));
  }
  if (!select.status().ok()) return select.status();
  return events;
}

}  // namespace normlab::storage
