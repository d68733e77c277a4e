// A question to the person at the terminal.
#ifndef NORMLAB_CLIENT_ASK_H_
#define NORMLAB_CLIENT_ASK_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/context.h"

namespace normlab::client {

// Whether the answer to "QUESTION [y/N]" is yes. FAILED_PRECONDITION when standard input is no
// terminal: then only --yes can say so.
absl::StatusOr<bool> Ask(Context& context, const std::string& question);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_ASK_H_
