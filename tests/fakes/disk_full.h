// While it lives files of this process get no larger than `bytes`, as if the disk was full by then.
#ifndef NORMLAB_TESTS_FAKES_DISK_FULL_H_
#define NORMLAB_TESTS_FAKES_DISK_FULL_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

namespace normlab::fakes {

class DiskFull {
 public:
  explicit DiskFull(rlim_t bytes = 1000) {
    signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit small = before_;
    small.rlim_cur = bytes;
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~DiskFull() { EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0); }
  DiskFull(const DiskFull&) = delete;
  DiskFull& operator=(const DiskFull&) = delete;

 private:
  rlimit before_{};
};

}  // namespace normlab::fakes

#endif  // NORMLAB_TESTS_FAKES_DISK_FULL_H_
