// What every command has: the global options, the terminal, the way to the server.
#ifndef NORMLAB_CLIENT_CONTEXT_H_
#define NORMLAB_CLIENT_CONTEXT_H_

#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/api_client.h"
#include "client/exit_code.h"
#include "client/term/terminal.h"

namespace normlab::client {

struct Context {
  explicit Context(Terminal& terminal_to_use) : terminal(terminal_to_use) {}

  Terminal& terminal;
  bool json = false;
  std::string data_dir;
  std::string server;
  int exit_code = kExitOk;

  // Finds the server and makes a client; nothing is sent yet.
  absl::StatusOr<std::unique_ptr<ApiClient>> Connect() const;

  // Prints an error ("normlab: …", or {"error": …} with --json) and gives its exit code.
  int Fail(const absl::Status& status) const;
  // The same for a command line that cannot be carried out.
  int FailUsage(const std::string& message) const;

  // Prints a message as one line of proto3 JSON.
  void PrintJson(const google::protobuf::Message& message) const;
};

// One line of proto3 JSON, names in lowerCamelCase.
std::string ToJson(const google::protobuf::Message& message);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_CONTEXT_H_
