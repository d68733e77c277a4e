// An effective spec, as the server would send it.
#ifndef NORMLAB_TESTS_UNIT_LINK_EFFECTIVE_SPEC_H_
#define NORMLAB_TESTS_UNIT_LINK_EFFECTIVE_SPEC_H_

#include "google/protobuf/text_format.h"
#include "normlab/v1/run_spec.pb.h"

namespace normlab {

inline v1::RunSpec EffectiveSpec(int64_t steps) {
  v1::RunSpec spec;
  google::protobuf::TextFormat::ParseFromString(R"pb(
                                                  model: "decoder"
                                                  placement: "pre"
                                                  norm: "layernorm"
                                                  norm_epsilon: 1e-6
                                                  final_norm: "on"
                                                  layers: 2
                                                  d_model: 64
                                                  heads: 4
                                                  ffn_width: 256
                                                  ffn: "gelu-tanh"
                                                  vocab_size: 64
                                                  sequence_length: 32
                                                  batch_size: 24
                                                  optimizer: "adamw"
                                                  learning_rate: 2e-3
                                                  schedule: "constant"
                                                  warmup_steps: 0
                                                  beta1: 0.9
                                                  beta2: 0.95
                                                  epsilon: 1e-8
                                                  weight_decay: 0.01
                                                  decay_parameters: "all"
                                                  init: "flax"
                                                  seed: 7
                                                  data: "arithmetic"
                                                  threads: 1
                                                  stop_on_non_finite: true
                                                )pb",
                                                &spec);
  spec.set_steps(steps);
  return spec;
}

}  // namespace normlab

#endif  // NORMLAB_TESTS_UNIT_LINK_EFFECTIVE_SPEC_H_
