// An effective spec, as the server would send it.
#ifndef NORMLAB_TESTS_UNIT_LINK_EFFECTIVE_SPEC_H_
#define NORMLAB_TESTS_UNIT_LINK_EFFECTIVE_SPEC_H_

#include "normlab/v1/run_spec.pb.h"
#include "server/domain/spec.h"

namespace normlab {

// The article's model with two blocks, and the series that every run has and no others.
inline v1::RunSpec EffectiveSpec(int64_t steps) {
  v1::RunSpec spec;
  spec.set_layers(2);
  spec.set_steps(steps);
  spec.set_diagnose_every(0);
  return domain::EffectiveSpec(spec);
}

}  // namespace normlab

#endif  // NORMLAB_TESTS_UNIT_LINK_EFFECTIVE_SPEC_H_
