// What the commands have in common that change what people say about a run.
#ifndef NORMLAB_CLIENT_COMMANDS_DESCRIBE_RUN_H_
#define NORMLAB_CLIENT_COMMANDS_DESCRIBE_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "client/context.h"
#include "normlab/v1/run.pb.h"

namespace normlab::client {

// For the run that each of `references` stands for: lets `change` set `field` of the run, which it
// is given as it is, sends that, and prints what the run then is in `print`'s words. Goes on after
// a failure; the exit code is the latest failure's.
int DescribeRuns(Context& context, const std::vector<std::string>& references,
                 const std::string& field, const std::function<void(normlab::v1::Run&)>& change,
                 const std::function<std::string(const normlab::v1::Run&)>& print);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_COMMANDS_DESCRIBE_RUN_H_
