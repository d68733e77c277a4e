// Writes down what training produces: every observation becomes a record of the attempt's spool.
//
//   SpoolObserver observer(&spool, [&] { return session.requested(); });
//   Result result = Train(settings, observer);
//   observer.Finish(finished);
//
// The spool full, because the server or its disk is away: training waits here. Nothing is dropped,
// except the one step that waits when the spool is interrupted: that ends the run before it.
// Used by the thread that trains.
#ifndef NORMLAB_SERVER_TRAINER_LINK_SPOOL_OBSERVER_H_
#define NORMLAB_SERVER_TRAINER_LINK_SPOOL_OBSERVER_H_

#include <functional>
#include <string>

#include "normlab/worker/v1/worker.pb.h"
#include "server/base/spool.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

class SpoolObserver : public Observer {
 public:
  // `requested` says what is wanted of training now.
  SpoolObserver(Spool* spool, std::function<Request()> requested);

  void OnModel(const ModelSummary& summary) override;
  void OnSeries(std::span<const std::string> names) override;
  void OnStep(int64_t step, std::span<const Observation> observations) override;
  void OnCheckpoint(int64_t step, const std::string& file, int64_t bytes) override;
  Request Requested() override;

  // The last record. It fits in the spool's reserve.
  void Finish(const worker::v1::Finished& finished);

  // The last step that was written down; 0 before the first.
  int64_t last_step() const { return last_step_; }

 private:
  // False when the record was dropped. Throws when it can never be written.
  bool Append();

  Spool* const spool_;
  const std::function<Request()> requested_;
  worker::v1::Record record_;  // one for all, so that a step allocates nothing
  std::string bytes_;
  int64_t last_step_ = 0;
  bool interrupted_ = false;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_SPOOL_OBSERVER_H_
