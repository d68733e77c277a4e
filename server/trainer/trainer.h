// The border between the training engine (LibTorch) and everything else.
//
// This header is plain C++: no LibTorch, no protobuf. Sources under model/ and train/ include
// LibTorch and this header only; sources under link/ and main include gRPC and this header only.
// The two sides may not share a translation unit because LibTorch ships its own protobuf headers.
//
//   TrainingSettings settings;            // defaults = the article's experiment
//   Result result = Train(settings, observer);
#ifndef NORMLAB_SERVER_TRAINER_TRAINER_H_
#define NORMLAB_SERVER_TRAINER_TRAINER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::trainer {

// Every setting of a run, resolved: nothing is "auto" here. Field names and meanings are those of
// normlab.v1.RunSpec, where they are declared with defaults and ranges; link/settings.cc fills this
// struct from an effective RunSpec and a test walks the descriptor to prove no field is forgotten.
struct TrainingSettings {
  std::string model = "decoder";       // decoder
  std::string placement = "pre";       // pre | post
  std::string norm = "layernorm";      // layernorm | rmsnorm
  double norm_epsilon = 1e-6;          // inside the square root
  bool final_norm = true;              // a norm before the output head
  int64_t layers = 12;
  int64_t d_model = 64;
  int64_t heads = 4;                   // divides d_model
  int64_t ffn_width = 256;
  std::string ffn = "gelu-tanh";       // gelu-tanh
  int64_t vocab_size = 64;
  int64_t sequence_length = 32;
  int64_t batch_size = 24;
  int64_t steps = 180;
  std::string optimizer = "adamw";     // adamw
  double learning_rate = 2e-3;
  std::string schedule = "constant";   // constant
  int64_t warmup_steps = 0;            // linear warmup: lr * min(1, s / warmup_steps), s from 1
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::string decay_parameters = "all";  // all | matrices
  std::string init = "flax";           // flax
  int64_t seed = 7;
  std::string data = "arithmetic";     // arithmetic
  int64_t threads = 1;                 // exact number of threads that compute
  bool stop_on_non_finite = true;
};

// What the model is, known once it is built.
struct ModelSummary {
  int64_t parameter_count = 0;
  double flops_per_step = 0;           // multiply-adds counted as two, forward and backward
  std::string instruction_set;         // "same bits" holds within one: baseline, avx2, avx512
};

// One number of one step. `series` indexes the names given to Observer::OnSeries.
struct Observation {
  uint32_t series;
  double value;
};

// Receives what training produces. All calls come from the thread that called Train, in order.
class Observer {
 public:
  virtual ~Observer() = default;
  // Called once, before the first step, when the model is built.
  virtual void OnModel(const ModelSummary& summary) = 0;
  // Declares series names; their indices continue from the names declared before.
  virtual void OnSeries(std::span<const std::string> names) = 0;
  // Step numbers count from 1. Loss and gradient norm are those before the step's update; the
  // gradient norm is the one before clipping, over all parameters.
  virtual void OnStep(int64_t step, std::span<const Observation> observations) = 0;
  // Asked once a step; true ends training after the current step.
  virtual bool StopRequested() = 0;
};

enum class Ending {
  kFinished,  // all steps done
  kDiverged,  // non-finite loss or gradient norm at `last_step`
  kStopped,   // StopRequested
};

struct Result {
  Ending ending = Ending::kFinished;
  int64_t last_step = 0;
  std::string reason;  // one sentence for a person; empty when finished
};

// Trains on the CPU with exactly `settings.threads` computing threads. Throws std::runtime_error
// with a readable message for whatever goes wrong (torch exceptions are translated).
Result Train(const TrainingSettings& settings, Observer& observer);

// The parameter count of the model `settings` describes, by formula, without building it.
int64_t ParameterCount(const TrainingSettings& settings);

// Torch version the engine is linked with, for example "2.13.0".
std::string_view EngineVersion();

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAINER_H_
