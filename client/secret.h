// Tokens on their way in and out: by files and terminals, never by arguments.
#ifndef NORMLAB_CLIENT_SECRET_H_
#define NORMLAB_CLIENT_SECRET_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/context.h"
#include "client/private_file.h"

namespace normlab::client {

// The first line of `file` ("-": of standard input), or what is typed, unseen, after `prompt`.
// FAILED_PRECONDITION when nobody can be asked, or what comes is no token.
absl::StatusOr<std::string> ReadToken(Context& context, const std::string& file,
                                      const std::string& prompt);

// Where a new token goes: a file that is not there yet, or standard output. Opened before the token
// is made, because it cannot be shown again.
class TokenSink {
 public:
  // One of the two, or it is FAILED_PRECONDITION; ALREADY_EXISTS when there is such a file.
  static absl::StatusOr<TokenSink> Open(const std::string& file, bool print);
  bool prints() const { return file_ == nullptr; }
  // Writes the file; does nothing when the token is to be printed.
  absl::Status Put(const std::string& token);

 private:
  std::unique_ptr<PrivateFile> file_;
};

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_SECRET_H_
