// Errors of the API as a person reads them.
#ifndef NORMLAB_CLIENT_API_ERROR_H_
#define NORMLAB_CLIENT_API_ERROR_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "client/exit_code.h"

namespace normlab::client {

// The same code; the message has one line for each field violation ("spec.heads: 5 does not divide
// d_model 64; …"), else the server's message.
absl::Status FromGrpc(const grpc::Status& status);

// The exit code that a command ends with because of `status`.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_API_ERROR_H_
