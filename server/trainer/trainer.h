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

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::trainer {

// Every setting of a run, resolved: nothing is "auto" here. Field names and meanings are those of
// normlab.v1.RunSpec, where they are declared with defaults and ranges; link/settings.cc fills this
// struct from an effective RunSpec and a test walks the descriptor to prove no field is forgotten.
struct TrainingSettings {
  // Model.
  std::string model = "decoder";   // decoder | xl | encdec
  std::string placement = "pre";   // model/placement/ has one file for each
  std::string norm = "layernorm";  // layernorm | rmsnorm | dyt
  double norm_epsilon = 1e-6;      // inside the square root
  bool norm_gain = true;           // norms have a learned gain (and bias)
  double dyt_alpha = 0.5;          // first value of dyt's alpha
  bool final_norm = true;          // a norm before the output head
  std::string qk_norm = "off";     // off | rms-head | rms-full
  double residual_scale = 1;       // multiplies every branch
  double mix_fraction = 0.25;      // part of the blocks of `mix` that are post
  double layerscale_init = 0.1;    // first value of layerscale's lambdas
  int64_t layers = 12;
  int64_t decoder_layers = 12;  // of encdec; the encoder has `layers`
  int64_t d_model = 64;
  int64_t heads = 4;  // divides d_model
  int64_t ffn_width = 256;
  std::string ffn = "dense";             // dense | switch
  std::string activation = "gelu-tanh";  // relu | gelu | gelu-tanh | swiglu
  int64_t experts = 4;
  double capacity_factor = 1.2;
  std::string switch_overflow = "drop";  // drop | pass
  double balance_coefficient = 0.01;
  std::string attention = "softmax";  // softmax | uniform
  bool causal = true;
  bool bias = true;                   // of the blocks' linear layers
  std::string positions = "learned";  // learned | sinusoidal | rotary | none
  bool tie_embeddings = false;
  int64_t memory_length = 0;   // of xl
  int64_t table_length = 64;   // of xl's relative positions
  std::string init = "flax";   // flax | gpt2 | xavier | torch | fan-in | deepnorm | admin
  std::string init_file;       // safetensors to start from, or empty
  bool allow_missing = false;  // draw what init_file lacks
  // Data.
  int64_t vocab_size = 64;
  int64_t sequence_length = 32;
  std::string data =
      "arithmetic";       // arithmetic | copy | reverse | modular-addition | gaussian | text
  std::string text_file;  // of data text
  std::string text_unit = "bytes";      // bytes | characters
  std::string text_order = "shuffled";  // sequential | shuffled
  double validation_fraction = 0.1;     // of a text, held out
  int64_t validate_every = 0;           // steps; 0 is off
  // Training.
  int64_t batch_size = 24;
  int64_t accumulate = 1;  // batches that make one step
  int64_t steps = 180;
  double dropout = 0;
  std::string optimizer = "adamw";  // adamw | sgd
  double momentum = 0.9;            // of sgd
  double learning_rate = 2e-3;
  std::string schedule = "constant";  // constant | cosine | linear | noam
  int64_t warmup_steps = 0;           // linear warmup: lr * min(1, s / warmup_steps), s from 1
  double learning_rate_floor = 0;     // where cosine and linear end
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::string decay_parameters = "all";  // all | matrices
  double clip_norm = 0;                  // 0 is off
  int64_t seed = 7;
  std::string precision = "fp32";  // fp32 | bf16
  int64_t threads = 1;             // exact number of threads that compute
  bool stop_on_non_finite = true;
  // Where it is computed: "cpu", or "cuda", the first GPU that CUDA_VISIBLE_DEVICES leaves. On a
  // GPU one thread computes, whatever `threads` says.
  std::string device = "cpu";
  bool cuda_graph = false;  // on a GPU: record a step once and replay it
  // What this process may hold of the GPU's memory, and the part of it that is left to CUDA itself
  // (its context and the libraries' code); bytes. 0: as much as is free.
  int64_t gpu_memory_bytes = 0;
  int64_t gpu_context_bytes = 0;
  // What is looked at; none of it changes a bit of the training.
  int64_t diagnose_every = 10;    // steps; 0 is off
  bool diagnose_tensors = false;  // gradient norm of every tensor as well
  int64_t probe_every = 0;        // steps; 0 is off
  // Checkpoints.
  int64_t checkpoint_every = 0;      // steps; 0 is off
  int64_t checkpoint_seconds = 600;  // at most so old is the latest one; 0 is off
  int64_t keep_checkpoints = 2;
  std::string checkpoint_directory;  // empty: none are written, pausing just stops
  std::string resume_from;           // checkpoint file to go on from, or empty
  // Whoever observes asks for a pause behind this step, so no step is begun before it has been
  // asked for; 0 is off.
  int64_t step_limit = 0;
};

// What the model is, known once it is built.
struct ModelSummary {
  int64_t parameter_count = 0;
  // "Same bits" holds within one: baseline, avx2, avx512, or a GPU as in "cuda (NVIDIA H200)".
  std::string instruction_set;
};

// One number of one step. `series` indexes the names given to Observer::OnSeries.
struct Observation {
  uint32_t series;
  double value;
};

// What the observer wants after a step.
enum class Request {
  kGoOn,
  kProbe,  // go on; the next step also reports what Probes (train/probes.h) measures
  kPause,  // write a checkpoint, as soon as there is room for it, then end
  kStop,
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
  // A checkpoint of `step` is on disk, whole and synced: `file` in the checkpoint directory.
  virtual void OnCheckpoint(int64_t step, const std::string& file, int64_t bytes) = 0;
  // Asked once a step, after it.
  virtual Request Requested() = 0;
};

enum class Ending {
  kFinished,  // all steps done
  kDiverged,  // non-finite loss or gradient norm at `last_step`
  kStopped,   // Request::kStop
  kPaused,    // Request::kPause; there is a checkpoint of `last_step`
  // resume_from is damaged or gone: it was put aside as FILE.unreadable, and no step was done.
  kUnreadable,
};

struct Result {
  Ending ending = Ending::kFinished;
  int64_t last_step = 0;
  std::string reason;  // one sentence for a person; empty when finished
};

// Tells the time by which a checkpoint gets old; never goes back.
using MonotonicClock = std::function<std::chrono::steady_clock::time_point()>;

// Trains on settings.device; on the CPU with exactly `settings.threads` computing threads. Throws
// std::runtime_error with a readable message for whatever goes wrong (torch exceptions are
// translated). `clock` is asked once a step, or on a GPU once every few.
Result Train(const TrainingSettings& settings, Observer& observer,
             const MonotonicClock& clock = std::chrono::steady_clock::now);

// Torch version the engine is linked with, for example "2.13.0".
std::string_view EngineVersion();

// On how many GPUs this build trains a run: 0 when it has none built in.
int64_t GpusOfARun();

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAINER_H_
