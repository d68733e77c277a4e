// A watch as plain lines, for logs: one at each change of a run's state, one about every tenth of
// its steps. Of many runs only faults are told one by one; the others are counted, in a line about
// every tenth of the whole.
#ifndef NORMLAB_CLIENT_PLAIN_REPORTER_H_
#define NORMLAB_CLIENT_PLAIN_REPORTER_H_

#include <map>
#include <string>
#include <vector>

#include "client/watch_model.h"
#include "normlab/v1/run.pb.h"

namespace normlab::client {

class PlainReporter {
 public:
  // The lines that are new since the last call, `elapsed_seconds` after the watch began.
  std::vector<std::string> Report(const WatchModel& model, double elapsed_seconds = 0);

 private:
  std::vector<std::string> ReportMany(const WatchModel& model, double elapsed_seconds);

  struct Seen {
    normlab::v1::Run::State state = normlab::v1::Run::STATE_UNSPECIFIED;
    std::string remark;
    int64_t tenth = 0;
  };
  std::map<std::string, Seen> seen_;  // by run
  double start_fraction_ = -1;        // of the whole, when the watch began; -1: not known yet
  int told_tenth_ = -1;
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PLAIN_REPORTER_H_
