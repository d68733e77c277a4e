#include "client/problems.h"

#include "client/term/text.h"

namespace normlab::client {

using normlab::v1::StorageService;

void PrintProblems(Terminal& terminal, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    terminal.PrintError("normlab: warning: " + Clean(problem));
  }
}

void TellProblems(Context& context, ApiClient& client) {
  const auto storage = client.Call(client.storage(), &StorageService::Stub::GetStorage,
                                   normlab::v1::GetStorageRequest());
  if (!storage.ok()) return;
  PrintProblems(context.terminal, {storage->problems().begin(), storage->problems().end()});
}

}  // namespace normlab::client
