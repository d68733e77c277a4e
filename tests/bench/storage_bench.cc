// What the store costs: bytes a point on disk, points a second, time to draw and zoom a long curve,
// and what a run of thousands of series does to the others. One process, the real store, a folder
// of its own below the one given by --dir. Exits 1 when a bound is missed.
//
//   storage_bench [--dir FOLDER] [--scale F]      F = 0.1: a tenth of the points
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "server/base/ids.h"
#include "server/domain/spec.h"
#include "server/storage/curves.h"
#include "server/storage/runs.h"
#include "server/storage/store.h"

namespace normlab {
namespace {

using storage::AttemptRow;
using storage::Database;
using storage::Store;
using storage::WriteContext;
using SteadyClock = std::chrono::steady_clock;

constexpr double kMostBytes = 25;   // a point
constexpr double kMostMillis = 50;  // to draw a curve
constexpr int64_t kDrawnPoints = 2000;
constexpr double kFewestDrawn = 500;  // of them; each stands for a range and keeps its extremes
constexpr double kMostMillisBeside = 100;  // for a step to be stored beside 2,000 series

bool all_held = true;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "storage_bench: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

void Report(const char* what, double value, const char* unit, double bound = 0) {
  std::printf("  %-58s %10.2f %s", what, value, unit);
  if (bound > 0) std::printf("  (at most %g: %s)", bound, value <= bound ? "held" : "MISSED");
  std::printf("\n");
  std::fflush(stdout);
  if (bound > 0 && value > bound) all_held = false;
}

void ReportAtLeast(const char* what, double value, const char* unit, double bound) {
  std::printf("  %-58s %10.2f %s  (at least %g: %s)\n", what, value, unit, bound,
              value >= bound ? "held" : "MISSED");
  std::fflush(stdout);
  if (value < bound) all_held = false;
}

void ReportTruth(const char* what, bool holds) {
  std::printf("  %-58s %10s\n", what, holds ? "yes" : "NO");
  std::fflush(stdout);
  if (!holds) all_held = false;
}

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(values.size())))];
}

double MillisSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

// A store in a folder of its own.
class Bench {
 public:
  explicit Bench(const std::filesystem::path& dir)
      : dir_(dir / ("storage_bench." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(dir_);
    Open();
  }
  ~Bench() {
    store_.reset();
    std::filesystem::remove_all(dir_);
  }

  void Open() {
    Store::Options options;
    options.path = dir_ / "normlab.db";
    options.clock = &clock_;
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(options);
    Require(store.status());
    store_ = *std::move(store);
  }

  Store& store() { return *store_; }

  // Size of the database with everything folded into it.
  double Bytes() {
    store_.reset();
    const auto bytes = static_cast<double>(std::filesystem::file_size(dir_ / "normlab.db"));
    Open();
    return bytes;
  }

  std::pair<std::string, AttemptRow> AddAttempt() {
    v1::Run run;
    run.set_id(ids_.Next(clock_.WallMicros()));
    run.set_display_name("a run");
    run.set_user("bench");
    run.set_device("auto");
    *run.mutable_effective_spec() = domain::EffectiveSpec(run.spec());
    run.set_state(v1::Run::STATE_QUEUED);
    AttemptRow attempt;
    Require(store_->writer().Write([&](WriteContext& context) -> absl::Status {
      if (auto status = storage::InsertRun(context, run); !status.ok()) return status;
      AttemptRow row;
      row.run = run.id();
      row.device = "cpu:0";
      absl::StatusOr<AttemptRow> inserted = storage::InsertAttempt(context, row);
      if (inserted.ok()) attempt = *inserted;
      return inserted.status();
    }));
    return {run.id(), attempt};
  }

 private:
  std::filesystem::path dir_;
  SystemClock clock_;
  UlidGenerator ids_;
  std::unique_ptr<Store> store_;
};

// A trainer as the store sees it: batches of records, some of them on their way.
class Trainer {
 public:
  Trainer(Bench& bench, int series, uint32_t seed) : bench_(bench), series_(series), random_(seed) {
    std::tie(run_, attempt_) = bench.AddAttempt();
    worker::v1::Record record;
    for (int i = 0; i < series; ++i) {
      record.mutable_series()->add_names(i == 0 ? "loss" : "series/" + std::to_string(i));
    }
    Send({record.SerializeAsString()});
  }
  ~Trainer() { Wait(0); }

  const std::string& run() const { return run_; }
  int64_t step() const { return step_; }

  // The next steps as one batch. Values are noise, all bits of which count.
  void SendSteps(int64_t count, double add = 0) {
    std::vector<std::string> records;
    for (int64_t i = 0; i < count; ++i) {
      worker::v1::Record record;
      record.mutable_step()->set_step(++step_);
      for (int s = 0; s < series_; ++s) {
        record.mutable_step()->add_series(static_cast<uint32_t>(s));
        record.mutable_step()->add_values(normal_(random_) + add);
      }
      records.push_back(record.SerializeAsString());
    }
    Send(std::move(records));
  }

  // Until at most `left` batches are on their way.
  void Wait(int left) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outstanding_ <= left; });
  }

 private:
  void Send(std::vector<std::string> records) {
    {
      const std::lock_guard lock(mutex_);
      ++outstanding_;
    }
    const uint64_t first = record_;
    record_ += records.size();
    const storage::Load load = {static_cast<int64_t>(records.size()) * series_, /*bulk=*/true};
    bench_.store().writer().Submit(
        [this, first, records = std::move(records)](WriteContext& context) {
          return bench_.store().attempt_log().Append(context, attempt_.id, first, records);
        },
        [this](const absl::Status& status) {
          Require(status);
          const std::lock_guard lock(mutex_);
          --outstanding_;
          changed_.notify_all();
        },
        load);
  }

  Bench& bench_;
  const int series_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::string run_;
  AttemptRow attempt_;
  uint64_t record_ = 1;
  int64_t step_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int outstanding_ = 0;
};

// 16 trainers of 3 series, batches in turn.
void MeasureDisk(const std::filesystem::path& dir, int64_t steps, int64_t batch) {
  Bench bench(dir);
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (uint32_t i = 0; i < 16; ++i) trainers.push_back(std::make_unique<Trainer>(bench, 3, i));
  for (const auto& trainer : trainers) trainer->Wait(0);
  const double empty = bench.Bytes();
  const auto start = SteadyClock::now();
  for (int64_t step = 0; step < steps; step += batch) {
    for (const auto& trainer : trainers) {
      trainer->SendSteps(batch);
      trainer->Wait(3);
    }
  }
  for (const auto& trainer : trainers) trainer->Wait(0);
  const double seconds = MillisSince(start) / 1000;
  const double points = static_cast<double>(steps / batch * batch * 16 * 3);
  std::printf("%.0f points in batches of %d step%s, 16 trainers of 3 series\n", points,
              static_cast<int>(batch), batch == 1 ? "" : "s");
  Report("points a second, durable", points / seconds, "/s");
  Report("on disk, a point", (bench.Bytes() - empty) / points, "bytes", kMostBytes);
}

struct Drawn {
  domain::Curve curve;
  int64_t rows = 0;
  double millis = 0;
};

Drawn Draw(Bench& bench, const std::string& run, storage::StepRange range) {
  Drawn drawn;
  const auto start = SteadyClock::now();
  Require(bench.store().Read([&](Database& database) -> absl::Status {
    const auto segments = storage::SegmentsOf(database, run, {range, 0, kDrawnPoints});
    if (!segments.ok()) return segments.status();
    auto reader = storage::CurveReader::Plan(database, *segments, "loss", kDrawnPoints);
    if (!reader.ok()) return reader.status();
    int64_t rows = 10'000'000;
    const auto read = reader->Read(database, rows);
    drawn.rows = 10'000'000 - rows;
    drawn.curve = reader->drawn();
    return read.status();
  }));
  drawn.millis = MillisSince(start);
  return drawn;
}

void MeasureDrawing(const std::filesystem::path& dir, int64_t steps) {
  Bench bench(dir);
  Trainer trainer(bench, 1, 1);
  std::mt19937_64 random(7);
  const int64_t spike = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(steps));
  std::vector<double> whole_times;
  int64_t most_rows = 0;
  bool spike_drawn = true;
  while (trainer.step() < steps) {
    const int64_t next = trainer.step() + 1;
    if (next == spike) {
      trainer.SendSteps(1, 1e6);
    } else {
      const int64_t end = next < spike ? std::min(spike - 1, steps) : steps;
      trainer.SendSteps(std::min<int64_t>(1000, end - trainer.step()));
    }
    trainer.Wait(3);
    // While it grows: what is worst for drawing lies just below a power of two of points.
    if (trainer.step() % (steps / 40) < 1000 && trainer.step() > steps / 2) {
      const Drawn drawn = Draw(bench, trainer.run(), {});
      whole_times.push_back(drawn.millis);
      most_rows = std::max(most_rows, drawn.rows);
    }
  }
  trainer.Wait(0);
  std::printf("a curve of %ld steps with a spike at one, drawn with %ld points\n",
              static_cast<long>(steps), static_cast<long>(kDrawnPoints));
  Report("to draw it while it grew from half its length, slowest", Percentile(whole_times, 1), "ms",
         kMostMillis);
  Report("rows read for that, at most", static_cast<double>(most_rows), "rows");

  std::vector<double> times;
  for (int i = 0; i < 50; ++i) {
    const Drawn drawn = Draw(bench, trainer.run(), {});
    times.push_back(drawn.millis);
    spike_drawn = spike_drawn && std::any_of(drawn.curve.values.begin(), drawn.curve.values.end(),
                                             [](double value) { return value > 1e5; });
  }
  const Drawn last = Draw(bench, trainer.run(), {});
  Report("to draw it whole, median of 50", Percentile(times, 0.5), "ms", kMostMillis);
  const auto drawn_points = static_cast<double>(last.curve.steps.size());
  Report("points drawn", drawn_points, "points", static_cast<double>(kDrawnPoints));
  ReportAtLeast("points drawn", drawn_points, "points", kFewestDrawn);
  ReportTruth("the spike is drawn every time", spike_drawn);

  std::vector<double> zooms;
  for (int i = 0; i < 300; ++i) {
    const double share = std::pow(10, -4 * static_cast<double>(random() % 1000) / 1000);
    const auto width = std::max<int64_t>(1, static_cast<int64_t>(share * double(steps)));
    const auto first = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(steps));
    zooms.push_back(Draw(bench, trainer.run(), {first, first + width}).millis);
  }
  Report("to draw a part, 300 widths and places, median", Percentile(zooms, 0.5), "ms");
  Report("to draw a part, slowest", Percentile(zooms, 1), "ms", kMostMillis);

  const domain::Curve before = Draw(bench, trainer.run(), {1, steps}).curve;
  std::atomic<bool> stop = false;
  std::thread appender([&] {
    while (!stop) {
      trainer.SendSteps(1);
      trainer.Wait(2);
    }
  });
  bool same = true;
  for (int i = 0; i < 100; ++i) {
    const domain::Curve now = Draw(bench, trainer.run(), {1, steps}).curve;
    same = same && now.steps == before.steps && now.values == before.values;
  }
  stop = true;
  appender.join();
  ReportTruth("100 reads are the same while steps are appended", same);
}

// How long one small run's steps take to be stored, alone and beside a run of many series.
void MeasureManySeries(const std::filesystem::path& dir, int64_t steps) {
  Bench bench(dir);
  Trainer small(bench, 3, 1);
  const auto latencies = [&] {
    std::vector<double> millis;
    for (int64_t i = 0; i < steps; ++i) {
      const auto start = SteadyClock::now();
      small.SendSteps(1);
      small.Wait(0);
      millis.push_back(MillisSince(start));
    }
    return millis;
  };
  latencies();
  const std::vector<double> alone = latencies();
  Trainer large(bench, 2000, 2);
  large.Wait(0);
  std::atomic<bool> stop = false;
  std::atomic<int64_t> large_steps = 0;
  std::thread beside([&] {
    while (!stop) {
      large.SendSteps(1);
      large.Wait(0);
      ++large_steps;
    }
  });
  const auto start = SteadyClock::now();
  const std::vector<double> together = latencies();
  const double seconds = MillisSince(start) / 1000;
  stop = true;
  beside.join();
  std::printf("a run of 2,000 series beside a small one\n");
  Report("a step of the small one is stored after, alone, median", Percentile(alone, 0.5), "ms");
  Report("beside the large one, median", Percentile(together, 0.5), "ms");
  Report("beside the large one, 99th percentile", Percentile(together, 0.99), "ms",
         kMostMillisBeside);
  Report("points a second of the large one meanwhile",
         static_cast<double>(large_steps * 2000) / seconds, "/s");
}

}  // namespace
}  // namespace normlab

int main(int argc, char** argv) {
  std::filesystem::path dir = std::filesystem::temp_directory_path();
  double scale = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--dir") == 0) dir = argv[i + 1];
    if (std::strcmp(argv[i], "--scale") == 0) scale = std::atof(argv[i + 1]);
  }
  const auto scaled = [&](double count) { return static_cast<int64_t>(count * scale); };
  normlab::MeasureDisk(dir, scaled(20'000), 1);
  normlab::MeasureDisk(dir, scaled(64'000), 64);
  normlab::MeasureDrawing(dir, scaled(1'000'000));
  normlab::MeasureManySeries(dir, scaled(400));
  return normlab::all_held ? 0 : 1;
}
