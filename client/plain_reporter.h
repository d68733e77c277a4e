// A watch as plain lines, for logs: one at each change of a run's state, one about every tenth of
// its steps.
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
  // The lines that are new since the last call.
  std::vector<std::string> Report(const WatchModel& model);

 private:
  struct Seen {
    normlab::v1::Run::State state = normlab::v1::Run::STATE_UNSPECIFIED;
    std::string remark;
    int64_t tenth = 0;
  };
  std::map<std::string, Seen> seen_;  // by run
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PLAIN_REPORTER_H_
