// How device kernels run on the host: the loops of server/trainer/model/kernels/device/README.md.
// Included only by emulated_device.cc.
#ifndef NORMLAB_TESTS_EMULATION_LAUNCH_EMULATED_H_
#define NORMLAB_TESTS_EMULATION_LAUNCH_EMULATED_H_

#include <math.h>

#include <stdexcept>

#include "tests/emulation/lane_team.h"
#include "tests/emulation/stream.h"

#define NORMLAB_DEVICE

namespace normlab::trainer {
namespace {

// Calls body(i) for 0 <= i < count, from either end.
template <typename Body>
void InOrder(long count, const Body& body) {
  const bool reverse = EmulatedStream::Get().emulation().reverse;
  for (long i = 0; i < count; ++i) body(reverse ? count - 1 - i : i);
}

template <typename Body>
void ForEach(long count, const Body& body) {
  EmulatedStream::Get().Give([=] { InOrder(count, body); });
}

template <typename Body>
void ForEachRow(long rows, const Body& body) {
  EmulatedStream::Get().Give([=] {
    const bool reverse = EmulatedStream::Get().emulation().reverse;
    InOrder(rows, [&](long r) {
      LaneTeam::Get().Run([&](const Lanes& lanes) { body(lanes, r); }, reverse);
    });
  });
}

template <typename Term>
void AddColumnSumsOf(long rows, long width, const Term& term, float* sums) {
  EmulatedStream::Get().Give([=] {
    InOrder(width, [&](long c) {
      float sum = 0;
      for (long r = 0; r < rows; ++r) sum += term(r, c);
      sums[c] += sum;
    });
  });
}

template <typename Term, typename Store>
void TotalOf(long count, const Term& term, const Store& store) {
  EmulatedStream::Get().Give([=] {
    double total = 0;
    for (long i = 0; i < count; ++i) total += term(i);
    store(total);
  });
}

template <typename Body>
void Once(const Body& body) {
  EmulatedStream::Get().Give(body);
}

inline void PublishToHost() { __atomic_thread_fence(__ATOMIC_RELEASE); }

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_EMULATION_LAUNCH_EMULATED_H_
