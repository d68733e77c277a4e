// Facts about a run in lines of a name and a value, the same in every command.
#ifndef NORMLAB_CLIENT_RUN_FACTS_H_
#define NORMLAB_CLIENT_RUN_FACTS_H_

#include <string>
#include <string_view>

#include "client/term/terminal.h"
#include "normlab/v1/run.pb.h"

namespace normlab::client {

// "name            value"; nothing for an empty value.
void PrintFact(Terminal& terminal, std::string_view name, const std::string& value);

// "layers 6, steps 30": the settings that differ from the defaults.
std::string GivenSettings(const normlab::v1::Run& run);

// "norm rmsnorm, ffn_width 256": what the settings left at auto have become.
std::string ResolvedSettings(const normlab::v1::Run& run);

// Parameters, arithmetic and memory, as far as they are known.
void PrintModelSize(const normlab::v1::Summary& summary, Terminal& terminal);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_RUN_FACTS_H_
