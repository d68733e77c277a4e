// The threads that compute, and what LibTorch says about itself. Plain C++ on the outside.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_THREADS_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_THREADS_H_

#include <cstdint>
#include <functional>

namespace normlab::trainer {

// Makes LibTorch use exactly `threads` threads for its operations, and no others. Process-wide; the
// last call counts.
void SetThreads(int64_t threads);

// Calls work(0) ... work(count - 1), each on a thread of its own if `count` is at most that of
// SetThreads, and returns when all are done. Rethrows what one of them throws.
void RunOnThreads(int64_t count, const std::function<void(int64_t)>& work);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_THREADS_H_
