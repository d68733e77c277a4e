// A store in a folder of its own, and short ways to put runs and records into it.
#ifndef NORMLAB_TESTS_FAKES_STORED_RUNS_H_
#define NORMLAB_TESTS_FAKES_STORED_RUNS_H_

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "server/base/ids.h"
#include "server/domain/spec.h"
#include "server/storage/curves.h"
#include "server/storage/runs.h"
#include "server/storage/store.h"
#include "server/stream/hub.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::fakes {

// A record of worker.v1, serialized.
inline std::string SeriesRecord(const std::vector<std::string>& names) {
  worker::v1::Record record;
  for (const std::string& name : names) record.mutable_series()->add_names(name);
  return record.SerializeAsString();
}
inline std::string StepRecord(int64_t step, const std::vector<double>& values) {
  worker::v1::Record record;
  record.mutable_step()->set_step(step);
  for (size_t i = 0; i < values.size(); ++i) {
    record.mutable_step()->add_series(static_cast<uint32_t>(i));
    record.mutable_step()->add_values(values[i]);
  }
  return record.SerializeAsString();
}
inline std::string CheckpointRecord(int64_t step) {
  worker::v1::Record record;
  record.mutable_checkpoint()->set_step(step);
  record.mutable_checkpoint()->set_file("step-" + std::to_string(step) + ".safetensors");
  record.mutable_checkpoint()->set_bytes(1000 + step);
  return record.SerializeAsString();
}
inline std::string FinishedRecord(worker::v1::Finished::Outcome outcome, std::string reason = "") {
  worker::v1::Record record;
  record.mutable_finished()->set_outcome(outcome);
  record.mutable_finished()->set_reason(std::move(reason));
  return record.SerializeAsString();
}

struct NamedCurve {
  std::string name;
  domain::Curve curve;
};

// Every point that a query finds, series by series.
inline absl::StatusOr<std::vector<NamedCurve>> ReadCurves(storage::Database& database,
                                                          const std::string& run,
                                                          const storage::CurveQuery& query = {}) {
  const auto segments = storage::SegmentsOf(database, run, query);
  if (!segments.ok()) return segments.status();
  const auto names = storage::ReadSeriesNames(database, *segments);
  if (!names.ok()) return names.status();
  std::vector<NamedCurve> curves;
  for (const std::string& name : *names) {
    auto reader = storage::CurveReader::Plan(database, *segments, name, query.max_points);
    if (!reader.ok()) return reader.status();
    int64_t rows = std::numeric_limits<int64_t>::max();
    if (auto read = reader->Read(database, rows); !read.ok()) return read.status();
    curves.push_back({name, reader->drawn()});
  }
  return curves;
}

class StoredRuns {
 public:
  static constexpr size_t kKeptEvents = 64;  // few, so that tests can fall behind

  StoredRuns() { Open(); }
  explicit StoredRuns(size_t kept_events) : kept_events_(kept_events) { Open(); }
  // With limits and ticks as small as a test wants them.
  StoredRuns(storage::LogLimits limits, std::chrono::milliseconds tick)
      : log_limits_(limits), tick_(tick) {
    Open();
  }

  void Open() {
    hub_.reset();
    storage::Store::Options options;
    options.path = dir_.path() / "normlab.db";
    options.clock = &clock_;
    options.log_limits = log_limits_;
    options.tick = tick_;
    options.publish = [this](const std::vector<domain::EventPtr>& events, uint64_t sequence) {
      published_.insert(published_.end(), events.begin(), events.end());
      if (hub_) hub_->Publish(events, sequence);
    };
    store_.reset();
    store_ = storage::Store::Open(options).value();
    hub_ = std::make_unique<stream::Hub>(store_->opened_at_sequence(), kept_events_);
  }
  void Close() { store_.reset(); }

  storage::Store& store() { return *store_; }
  stream::Hub& hub() { return *hub_; }
  FakeClock& clock() { return clock_; }
  const std::filesystem::path& directory() const { return dir_.path(); }
  // Everything published so far; read it only after a Write of the test's own has returned.
  std::vector<domain::EventPtr>& published() { return published_; }

  // A run as it comes from a submit, not stored yet.
  v1::Run MakeRun(const std::string& device = "auto", int64_t steps = 180) {
    v1::Run run;
    run.set_id(ids_.Next(clock_.WallMicros()));
    run.set_display_name("a run");
    run.set_user("lab1");
    run.set_device(device);
    run.mutable_spec()->set_steps(steps);
    *run.mutable_effective_spec() = domain::EffectiveSpec(run.spec());
    run.set_state(v1::Run::STATE_QUEUED);
    return run;
  }
  std::string AddRun(const std::string& device = "auto", int64_t steps = 180) {
    const v1::Run run = MakeRun(device, steps);
    Require(store_->writer().Write(
        [&](storage::WriteContext& context) { return storage::InsertRun(context, run); }));
    return run.id();
  }

  // A new attempt of the run, which is then RUNNING (or `state`). It goes on from a step of the
  // latest attempt that has it.
  storage::AttemptRow StartAttempt(const std::string& run, int64_t resumed_from = 0,
                                   v1::Run::State state = v1::Run::STATE_RUNNING) {
    storage::AttemptRow attempt;
    Require(store_->writer().Write([&](storage::WriteContext& context) {
      storage::AttemptRow row;
      row.run = run;
      row.device = "cpu:0";
      row.resumed_from_step = resumed_from;
      const auto attempts = storage::ReadAttempts(context.database, run);
      if (!attempts.ok()) return attempts.status();
      for (const storage::AttemptRow& earlier : *attempts) {
        if (resumed_from > earlier.resumed_from_step && resumed_from <= earlier.last_step) {
          row.resumed_from_attempt = earlier.number;
        }
      }
      absl::StatusOr<storage::AttemptRow> inserted = storage::InsertAttempt(context, row);
      if (!inserted.ok()) return inserted.status();
      attempt = *inserted;
      return absl::OkStatus();
    }));
    SetState(run, v1::Run::STATE_STARTING);
    SetState(run, state);
    return attempt;
  }

  void SetState(const std::string& run, v1::Run::State state) {
    store_->writer()
        .Write([&](storage::WriteContext& context) {
          return storage::UpdateRun(context, run, [&](v1::Run& changed) {
            changed.set_state(state);
            return absl::OkStatus();
          });
        })
        .IgnoreError();
  }

  absl::Status Append(int64_t attempt, uint64_t first, const std::vector<std::string>& records) {
    return store_->writer().Write([&](storage::WriteContext& context) {
      return store_->attempt_log().Append(context, attempt, first, records);
    });
  }

  std::vector<NamedCurve> Curves(const std::string& run, const storage::CurveQuery& query = {}) {
    std::vector<NamedCurve> curves;
    Require(store_->Read([&](storage::Database& database) {
      auto read = ReadCurves(database, run, query);
      if (read.ok()) curves = *std::move(read);
      return read.status();
    }));
    return curves;
  }

  v1::Run Read(const std::string& id) {
    v1::Run run;
    Require(store_->Read([&](storage::Database& database) {
      absl::StatusOr<v1::Run> read = storage::ReadRun(database, id);
      if (read.ok()) run = *read;
      return read.status();
    }));
    return run;
  }

 private:
  static void Require(const absl::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

  storage::LogLimits log_limits_;
  std::chrono::milliseconds tick_{1000};
  const size_t kept_events_ = kKeptEvents;
  TempDir dir_;
  FakeClock clock_;
  UlidGenerator ids_;
  std::vector<domain::EventPtr> published_;
  std::unique_ptr<stream::Hub> hub_;
  std::unique_ptr<storage::Store> store_;
};

}  // namespace normlab::fakes

#endif  // NORMLAB_TESTS_FAKES_STORED_RUNS_H_
