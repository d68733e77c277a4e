// What users have used lately: device-seconds, of which those of a day ago count half, those of two
// days ago a quarter, and so on. A second on a CPU slot and one on a GPU count the same.
//
// A run that holds w devices from time a to time b leaves at time t
//   integral over [a, b] of w * 2^(-(t - s) / H) ds  =  w * H / ln 2 * (2^(-(t-b)/H) -
//   2^(-(t-a)/H))
// with H the half-life.
#ifndef NORMLAB_SERVER_SCHEDULER_FAIR_SHARE_H_
#define NORMLAB_SERVER_SCHEDULER_FAIR_SHARE_H_

#include <cstdint>
#include <map>
#include <string>

namespace normlab::scheduler {

inline constexpr double kUsageHalfLife = 24 * 3600;  // seconds

// A device that a user's run holds now counts as if it had been held this much longer: of two users
// who have used equally much, the one whose run starts first goes behind the other.
inline constexpr double kDeviceAdvance = 60;  // seconds

// What is left of one device-second after so many seconds: 1 down to 0.
double UsageLeft(double seconds);

// What `width` devices held for `seconds` until now amount to.
double UsageOfHolding(double width, double seconds);

// What each user has used, kept up to date by who takes and who returns devices. Times are seconds
// by any one clock that never goes back. Not thread-safe.
class UsageLedger {
 public:
  // A run held `width` devices for `seconds` and returned them `ago` seconds before `now`.
  void AddPast(const std::string& user, double width, double seconds, double ago, double now);
  // A run has held `width` devices since `since`, and still does. A run that is known already is
  // left as it is.
  void Take(const std::string& run, const std::string& user, double width, double since);
  // It holds them no longer. A run that is not known changes nothing.
  void Return(const std::string& run, double now);

  // By user, with what their runs hold now; users with next to nothing are left out.
  std::map<std::string, double> At(double now) const;

 private:
  struct Past {
    double device_seconds = 0;
    double time = 0;  // as of when
  };
  struct Taken {
    std::string user;
    double width = 0;
    double since = 0;
  };
  void Add(const std::string& user, double device_seconds, double now);

  std::map<std::string, Past> past_;    // by user
  std::map<std::string, Taken> taken_;  // by run
};

}  // namespace normlab::scheduler

#endif  // NORMLAB_SERVER_SCHEDULER_FAIR_SHARE_H_
