// The Switch layer (Fedus et al. 2021): every token goes to one of several experts.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_SWITCH_H_
#define NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_SWITCH_H_

#include <cstdint>
#include <functional>

#include "server/trainer/model/program.h"

namespace normlab::trainer {

struct SwitchOptions {
  int64_t experts = 1;
  int64_t capacity = 1;            // tokens that an expert takes, in the order of the rows
  bool pass = false;               // a token without room: its input instead of the expert's output
  double balance_coefficient = 0;  // weight of the balance loss
};

// floor(factor * tokens / experts), and not more than there are tokens.
int64_t SwitchCapacity(double factor, int64_t tokens, int64_t experts);

// With p = softmax(logits), row t of the result is p_e * expert_e(x_t) for the e with the largest
// p_e (the first of equals). A row for which its expert has no room is 0, or p_e * x_t with `pass`.
// `record_expert(e, inputs)` records expert e on [capacity, d], rows without a token being 0.
//
// The balance loss experts * sum_e f_e P_e, where f_e is the part of the tokens sent to e before
// any is dropped and P_e the mean of p_e, is added to Program::balance_loss(), and its gradient
// times the coefficient to that of the logits. f has no gradient.
Value SwitchLayer(const SwitchOptions& options, Value logits, Value x,
                  const std::function<Value(int64_t expert, Value inputs)>& record_expert);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_SWITCH_H_
