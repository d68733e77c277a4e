// Events as lines of a text/event-stream.
#ifndef NORMLAB_SERVER_HTTP_EVENT_TEXT_H_
#define NORMLAB_SERVER_HTTP_EVENT_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "normlab/v1/run_service.pb.h"

namespace normlab::http {

// The `event:` and `data:` lines of an event, whoever watches: the `id:` line and the empty line
// that ends the frame are the watcher's. The data is the JSON of the oneof's message. Any thread.
std::string EventText(const v1::WatchRunsResponse& event);

// A whole frame that says nothing happened.
std::string_view HeartbeatFrame();

// A whole `error` frame: the watch broke after the stream had begun.
std::string ErrorFrame(const absl::Status& status);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_EVENT_TEXT_H_
