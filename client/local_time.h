// Times for people.
#ifndef NORMLAB_CLIENT_LOCAL_TIME_H_
#define NORMLAB_CLIENT_LOCAL_TIME_H_

#include <google/protobuf/timestamp.pb.h>

#include <ctime>
#include <string>

namespace normlab::client {

// "2026-11-30 14:05:59", where the reader is.
inline std::string LocalTime(const google::protobuf::Timestamp& time) {
  const std::time_t seconds = time.seconds();
  std::tm local{};
  char text[64];
  if (::localtime_r(&seconds, &local) == nullptr) return "";
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local));
}

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_LOCAL_TIME_H_
