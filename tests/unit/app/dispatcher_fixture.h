// A dispatcher over a real store and an executor without processes.
#ifndef NORMLAB_TESTS_UNIT_APP_DISPATCHER_FIXTURE_H_
#define NORMLAB_TESTS_UNIT_APP_DISPATCHER_FIXTURE_H_

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "server/app/dispatcher.h"
#include "tests/fakes/scripted_executor.h"
#include "tests/fakes/stored_runs.h"

namespace normlab::app {

class DispatcherTest : public ::testing::Test {
 protected:
  void Start(int slots = 1) {
    Dispatcher::Options options;
    options.data_dir = runs_.directory();
    options.files = &files_;
    options.clock = &runs_.clock();
    std::vector<scheduler::Device> devices(slots);
    for (int i = 0; i < slots; ++i) devices[i].id = "cpu:" + std::to_string(i);
    devices_ = std::make_unique<scheduler::DeviceBoard>(std::move(devices));
    options.devices = devices_.get();
    options.make_executor = [this](executor::Executor::ExitCallback on_exit) {
      auto made = std::make_unique<fakes::ScriptedExecutor>(std::move(on_exit));
      executor_ = made.get();
      executor_->OnAdopt(on_adopt_);
      return made;
    };
    dispatcher_ = std::make_unique<Dispatcher>(runs_.store(), std::move(options));
    ASSERT_TRUE(dispatcher_->Start().ok());
  }

  // A run with that on_interrupt.
  std::string AddRunWith(const std::string& on_interrupt) {
    v1::RunSpec spec;
    spec.set_on_interrupt(on_interrupt);
    return AddRunWith(spec);
  }
  // A run with these settings.
  std::string AddRunWith(const v1::RunSpec& spec, const std::string& name = "a run") {
    v1::Run run = runs_.MakeRun();
    run.set_display_name(name);
    run.mutable_spec()->MergeFrom(spec);
    run.mutable_effective_spec()->MergeFrom(spec);
    EXPECT_TRUE(
        runs_.store()
            .writer()
            .Write([&](storage::WriteContext& context) { return storage::InsertRun(context, run); })
            .ok());
    return run.id();
  }

  // The run that holds a device; empty when none does.
  std::string HolderOf(size_t device) {
    const std::vector<scheduler::Lease> leases = devices_->Devices().at(device).leases;
    return leases.empty() ? "" : leases.front().run;
  }

  // Waits until nobody holds it: a device is free a moment after its run's end is stored.
  bool BecomesFree(size_t device) {
    for (int i = 0; i < 20'000 && !HolderOf(device).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return HolderOf(device).empty();
  }

  // Waits for a state, on the store's own events.
  v1::Run WaitForState(const std::string& run, v1::Run::State state) {
    for (int i = 0; i < 20'000; ++i) {
      v1::Run read = runs_.Read(run);
      if (read.state() == state) return read;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "run stays " << runs_.Read(run).state();
    return runs_.Read(run);
  }

  static executor::ExitReport Code(int code) {
    executor::ExitReport report;
    report.exit_code = code;
    return report;
  }
  static executor::ExitReport Signal(int signal) {
    executor::ExitReport report;
    report.exit_signal = signal;
    return report;
  }

  absl::StatusOr<Dispatcher::Attached> Attach(
      const executor::LaunchRequest& launch, std::function<void()> stop = [] {},
      std::function<void()> pause = [] {}, std::function<bool()> probe = [] { return true; }) {
    return dispatcher_->Attach(launch.key.run, launch.key.attempt, launch.token,
                               {stop, pause, probe});
  }
  // What a trainer leaves behind that paused after `step`, and its end.
  void PauseAfter(const executor::LaunchRequest& launch, const Dispatcher::Attached& attached,
                  int64_t step) {
    std::ofstream(files_.Checkpoints(launch.key.run) /
                  ("step-" + std::to_string(step) + ".safetensors"))
        << step;
    ASSERT_TRUE(runs_
                    .Append(attached.attempt_id, 1,
                            {fakes::SeriesRecord({"loss"}), fakes::StepRecord(step, {1}),
                             fakes::CheckpointRecord(step),
                             fakes::FinishedRecord(worker::v1::Finished::OUTCOME_PAUSED)})
                    .ok());
    executor_->Exit(launch.key, Code(0));
    WaitForState(launch.key.run, v1::Run::STATE_PAUSED);
  }

  fakes::StoredRuns runs_;
  const RunFiles files_{runs_.directory(), "/nowhere"};
  fakes::ScriptedExecutor* executor_ = nullptr;
  std::function<void()> on_adopt_;  // what happens while an attempt is taken over
  std::unique_ptr<scheduler::DeviceBoard> devices_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace normlab::app

#endif  // NORMLAB_TESTS_UNIT_APP_DISPATCHER_FIXTURE_H_
