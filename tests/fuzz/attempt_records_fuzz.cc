// Records as a trainer may send them, sound or not, in any order and cut in any way: what is
// refused leaves no trace, what is taken is stored once, and the server's memory of the attempt
// agrees with its database.
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "normlab/worker/v1/worker.pb.h"
#include "tests/fakes/stored_runs.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::fuzz::Input;
using normlab::storage::AttemptRow;
using normlab::storage::Database;
using normlab::storage::Statement;
using normlab::worker::v1::Record;

// What the database holds of an attempt.
struct Stored {
  uint64_t persisted_sequence = 0;
  int64_t last_step = 0;
  int64_t points = 0;
  int64_t greatest_step = 0;
  int64_t run_step = 0;
  bool operator==(const Stored&) const = default;
};

class World {
 public:
  World() {
    google::protobuf::SetLogHandler(nullptr);  // it tells of each text that is no UTF-8
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
    runs_ = std::make_unique<normlab::fakes::StoredRuns>();
  }
  // One store for many inputs, but not one that grows for hours.
  normlab::fakes::StoredRuns& Fresh() {
    if (++used_ % 5000 == 0) {
      runs_.reset();
      runs_ = std::make_unique<normlab::fakes::StoredRuns>();
    }
    runs_->published().clear();
    return *runs_;
  }
  void Close() { runs_.reset(); }

 private:
  std::unique_ptr<normlab::fakes::StoredRuns> runs_;
  int used_ = 0;
};

int64_t Number(Database& database, const char* sql, int64_t attempt) {
  Statement select = database.Prepared(sql);
  select.Bind(1, attempt);
  REQUIRE(select.Step());
  return select.Integer(0);
}

Stored Look(normlab::fakes::StoredRuns& runs, int64_t attempt) {
  Stored stored;
  const absl::Status status = runs.store().Read([&](Database& database) {
    const auto number = [&](const char* sql) { return Number(database, sql, attempt); };
    stored.persisted_sequence =
        static_cast<uint64_t>(number("SELECT persisted_sequence FROM attempts WHERE id = ?1"));
    stored.last_step = number("SELECT last_step FROM attempts WHERE id = ?1");
    stored.points =
        number("SELECT count(*) FROM points JOIN series ON series.id = series WHERE attempt = ?1");
    stored.greatest_step = number(
        "SELECT coalesce(max(step), 0) FROM points JOIN series ON series.id = series "
        "WHERE attempt = ?1");
    stored.run_step = number(
        "SELECT step FROM runs JOIN attempts ON attempts.run = runs.id WHERE attempts.id = ?1");
    return absl::OkStatus();
  });
  REQUIRE(status.ok());
  return stored;
}

// A record that is nearly what a trainer sends, or just bytes.
std::string RecordOf(Input& input) {
  const auto kind = input.Value<uint8_t>();
  Record record;
  switch (kind % 7) {
    case 0:
      for (int i = kind / 64; i >= 0; --i) {
        const std::string_view name = input.Text();
        record.mutable_series()->add_names(name.data(), name.size());
      }
      break;
    case 1:
    case 2: {
      record.mutable_step()->set_step(kind < 128 ? input.Value<uint8_t>() : input.Value<int64_t>());
      for (int i = 0; i < kind / 32; ++i) {
        record.mutable_step()->add_series(kind & 16 ? input.Value<uint8_t>()
                                                    : static_cast<uint32_t>(i));
        record.mutable_step()->add_values(input.Value<double>());
      }
      if (kind % 32 == 31) record.mutable_step()->add_values(0);  // one too many
      break;
    }
    case 3:
      record.mutable_model()->set_parameter_count(input.Value<int64_t>());
      record.mutable_model()->set_instruction_set(std::string(input.Text()));
      break;
    case 4:
      record.mutable_checkpoint()->set_step(input.Value<int8_t>());
      record.mutable_checkpoint()->set_file(std::string(input.Text()));
      record.mutable_checkpoint()->set_bytes(input.Value<int64_t>());
      break;
    case 5:
      record.mutable_finished()->set_outcome(
          static_cast<normlab::worker::v1::Finished::Outcome>(input.Value<int8_t>()));
      record.mutable_finished()->set_reason(std::string(input.Text()));
      break;
    default:
      return std::string(input.Text());
  }
  return record.SerializePartialAsString();
}

void AppendSome(normlab::fakes::StoredRuns& runs, int64_t attempt, Input& input) {
  const Stored before = Look(runs, attempt);
  std::vector<std::string> records;
  const auto shape = input.Value<uint8_t>();
  for (int i = shape % 8; i > 0; --i) records.push_back(RecordOf(input));
  // Mostly right behind what is stored; else sent again, or with a hole.
  uint64_t first = before.persisted_sequence + 1;
  if (shape >= 0xf0) first = input.Value<uint64_t>();
  if (shape >= 0xe0 && shape < 0xf0) first -= std::min<uint64_t>(first, shape & 15);

  const absl::Status status = runs.Append(attempt, first, records);
  const Stored after = Look(runs, attempt);
  if (!status.ok()) {
    REQUIRE(absl::IsInvalidArgument(status) || absl::IsOutOfRange(status));
    REQUIRE(!status.message().empty());
    REQUIRE(after == before);
    return;
  }
  REQUIRE(after.persisted_sequence >= before.persisted_sequence);
  REQUIRE(after.points >= before.points);
  REQUIRE(after.last_step >= after.greatest_step);
  REQUIRE(after.run_step == after.last_step);
  // Sent again, it changes nothing.
  REQUIRE(runs.Append(attempt, first, records).ok());
  REQUIRE(Look(runs, attempt) == after);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* world = new World;
  static const bool closes = std::atexit([] { world->Close(); }) == 0;
  REQUIRE(closes);
  normlab::fakes::StoredRuns& runs = world->Fresh();
  Input input(data, size);
  const std::string run = runs.AddRun();
  const AttemptRow attempt = runs.StartAttempt(run);
  while (!input.empty()) AppendSome(runs, attempt.id, input);
  REQUIRE(runs.Read(run).id() == run);
  return 0;
}
