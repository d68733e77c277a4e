// Deletes what deleted runs left behind, a piece at a time between the writer's other work.
#ifndef NORMLAB_SERVER_APP_GARBAGE_SWEEP_H_
#define NORMLAB_SERVER_APP_GARBAGE_SWEEP_H_

#include <atomic>

#include "server/app/run_files.h"
#include "server/storage/store.h"

namespace normlab::app {

class GarbageSweep {
 public:
  // `store` must have stopped writing before this goes.
  explicit GarbageSweep(storage::Store& store) : store_(store) {}

  // Begins, unless it is under way: at the server's start, and after each deletion. Any thread;
  // never waits.
  void Start();

  bool under_way() const { return under_way_.load(); }

 private:
  void SubmitPiece();

  storage::Store& store_;
  std::atomic<bool> under_way_{false};
};

// Removes the files of runs whose rows are gone: of deletions that a stop of the server cut short.
void RemoveFilesOfDeletedRuns(storage::Store& store, const RunFiles& files);

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_GARBAGE_SWEEP_H_
