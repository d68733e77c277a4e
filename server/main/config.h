// What a server is told: flags, else environment, else the configuration file, else defaults.
#ifndef NORMLAB_SERVER_MAIN_CONFIG_H_
#define NORMLAB_SERVER_MAIN_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace normlab::server {

struct Config {
  std::filesystem::path data_dir;
  std::string http = "127.0.0.1:8710";
  std::string grpc = "127.0.0.1:8711";
  std::filesystem::path socket;  // empty: in the data folder
  std::string log_level = "info";
  int64_t cpu_slots = 0;      // 0: one for each usable core
  std::string gpus = "auto";  // whether runs may use GPUs: auto, on, off
  std::vector<std::string> allowed_hosts;
  double cancel_grace_seconds = 10;
  double checkpoint_grace_seconds = 60;
  std::string on_stop = "leave";  // or "checkpoint"
  double stop_wait_seconds = 120;
  int64_t wal_notice_mib = 256;       // a log larger than that is a problem,
  int64_t wal_limit_mib = 1024;       // and beyond that points wait
  double heartbeat_seconds = 15;      // of idle event streams
  double stall_timeout_seconds = 30;  // of event streams that nobody reads
  std::filesystem::path shepherd;     // empty: beside this program
  std::filesystem::path trainer;
  std::optional<int64_t> warm_trainers;  // absent: 1, or 0 with a trainer of one's own
  std::filesystem::path texts;           // empty: ../share/normlab/texts from this program
};

// Either what to run with, or the exit code to leave with at once (help was shown, or the fault
// was told on standard error).
std::variant<Config, int> ReadConfig(int argc, const char* const* argv);

// $XDG_DATA_HOME/normlab, else ~/.local/share/normlab.
std::filesystem::path DefaultDataDir();

}  // namespace normlab::server

#endif  // NORMLAB_SERVER_MAIN_CONFIG_H_
