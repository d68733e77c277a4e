// What is wrong with the server, told to people beside what they asked for.
#ifndef NORMLAB_CLIENT_PROBLEMS_H_
#define NORMLAB_CLIENT_PROBLEMS_H_

#include <string>
#include <vector>

#include "client/api_client.h"
#include "client/context.h"
#include "client/term/terminal.h"

namespace normlab::client {

// A line on standard error for each.
void PrintProblems(Terminal& terminal, const std::vector<std::string>& problems);

// Asks the server and prints what it says. One that cannot tell is not bothered about: the command
// itself will meet it.
void TellProblems(Context& context, ApiClient& client);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PROBLEMS_H_
