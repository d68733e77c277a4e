// What a probe of a model measured at one step: read from the run's series, shown as a table with a
// row for each block.
#ifndef NORMLAB_CLIENT_PROBE_NUMBERS_H_
#define NORMLAB_CLIENT_PROBE_NUMBERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/api_client.h"
#include "client/term/terminal.h"

namespace normlab::client {

// The series that every measured step has, whatever the model.
inline constexpr char kProbeMark[] = "log_z";

struct ProbeBlock {
  std::string name;                      // "block/3"
  std::map<std::string, double> values;  // by the rest of the series' name: "jacobian_gain"
};

struct ProbeNumbers {
  normlab::v1::Run run;
  int64_t step = 0;
  std::vector<ProbeBlock> blocks;  // in the order of the model
  double log_z = 0;
};

absl::StatusOr<ProbeNumbers> ReadProbeNumbers(ApiClient& client, const normlab::v1::Run& run,
                                              int64_t step);

// {"run":"01J…","step":812,"values":{"block/1/attention_entropy":2.31,…,"log_z":4.17}}: values by
// the names of their series, those that are no number as the strings "NaN" and "Infinity".
std::string ProbeJson(const ProbeNumbers& numbers);

// A title, a row for each block with the columns that the model has, and log Z.
void PrintProbe(const ProbeNumbers& numbers, Terminal& terminal);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PROBE_NUMBERS_H_
