// The command line as a whole: parse, run, exit code. main() and the tests call it.
#ifndef NORMLAB_CLIENT_PROGRAM_H_
#define NORMLAB_CLIENT_PROGRAM_H_

#include <string>
#include <vector>

#include "client/term/terminal.h"

namespace normlab::client {

// `arguments` without the program's name.
int RunProgram(const std::vector<std::string>& arguments, Terminal& terminal);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PROGRAM_H_
