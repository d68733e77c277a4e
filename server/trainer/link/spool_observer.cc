#include "server/trainer/link/spool_observer.h"

#include <stdexcept>
#include <utility>

#include "server/base/log.h"

namespace normlab::trainer {

SpoolObserver::SpoolObserver(Spool* spool, std::function<Request()> requested)
    : spool_(spool), requested_(std::move(requested)) {}

void SpoolObserver::OnModel(const ModelSummary& summary) {
  worker::v1::ModelBuilt& model = *record_.mutable_model();
  model.set_parameter_count(summary.parameter_count);
  model.set_instruction_set(summary.instruction_set);
  Append();
}

void SpoolObserver::OnSeries(std::span<const std::string> names) {
  worker::v1::SeriesDeclared& series = *record_.mutable_series();
  series.clear_names();
  for (const std::string& name : names) series.add_names(name);
  Append();
}

void SpoolObserver::OnStep(int64_t step, std::span<const Observation> observations) {
  worker::v1::Step& message = *record_.mutable_step();
  message.set_step(step);
  message.clear_series();
  message.clear_values();
  for (const Observation& observation : observations) {
    message.add_series(observation.series);
    message.add_values(observation.value);
  }
  if (Append()) last_step_ = step;
}

void SpoolObserver::OnCheckpoint(int64_t step, const std::string& file, int64_t bytes) {
  worker::v1::CheckpointWritten& checkpoint = *record_.mutable_checkpoint();
  checkpoint.set_step(step);
  checkpoint.set_file(file);
  checkpoint.set_bytes(bytes);
  Append();
}

Request SpoolObserver::Requested() {
  // A checkpoint beyond the last step that is written down would leave a hole in the curve.
  return interrupted_ ? Request::kStop : requested_();
}

void SpoolObserver::Finish(const worker::v1::Finished& finished) {
  *record_.mutable_finished() = finished;
  record_.SerializeToString(&bytes_);
  const absl::StatusOr<uint64_t> sequence = spool_->AppendLast(bytes_);
  if (!sequence.ok()) LogError("the end is not recorded", {{"why", sequence.status().ToString()}});
}

bool SpoolObserver::Append() {
  if (interrupted_) return false;  // what follows a dropped record would stand in its place
  record_.SerializeToString(&bytes_);
  absl::StatusOr<uint64_t> sequence = spool_->TryAppend(bytes_);
  if (absl::IsResourceExhausted(sequence.status())) {
    LogWarning("training waits: the spool is full",
               {{"acked", std::to_string(spool_->acked_sequence())}});
    sequence = spool_->Append(bytes_);
    if (sequence.ok()) LogInfo("training goes on: the spool has room");
  }
  if (absl::IsCancelled(sequence.status())) interrupted_ = true;
  if (!sequence.ok() && !interrupted_) throw std::runtime_error(sequence.status().ToString());
  return sequence.ok();
}

}  // namespace normlab::trainer
