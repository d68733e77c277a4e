#include "server/main/config.h"

#include <pwd.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "server/main/version.h"

namespace normlab::server {
namespace {

constexpr char kFooter[] =
    "Examples:\n"
    "  normlabd                                        serve from the default data folder\n"
    "  normlabd --data-dir /srv/normlab --http 127.0.0.1:8710\n"
    "  normlabd --http 127.0.0.1:0 --grpc 127.0.0.1:0  take free ports (see endpoint.json)\n"
    "  normlabd --config normlab.toml\n\n"
    "The configuration file (TOML) has the long options as keys: http = \"127.0.0.1:8710\",\n"
    "cpu-slots = 2, allowed-hosts = [\"lab.example.org\"]. Flags win over environment variables,\n"
    "which win over the file.";

std::filesystem::path Home() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  const passwd* account = getpwuid(geteuid());
  return account != nullptr ? account->pw_dir : "/";
}

// Rewrites TOML as the options that CLI11 knows, so that ranges and unknown keys are checked in one
// place. CLI11's own reader of configuration files understands only a part of TOML.
class TomlConfig : public CLI::Config {
 public:
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::stringstream text;
    text << input.rdbuf();
    toml::table parsed;
    try {
      parsed = toml::parse(text.str());
    } catch (const toml::parse_error& error) {
      std::stringstream fault;
      fault << "configuration file, line " << error.source().begin.line << ": "
            << error.description();
      throw CLI::FileError(fault.str(), CLI::ExitCodes::FileError);
    }
    std::vector<CLI::ConfigItem> items;
    for (const auto& [key, node] : parsed) {
      CLI::ConfigItem item;
      item.name = std::string(key.str());
      if (const toml::array* array = node.as_array()) {
        for (const toml::node& element : *array) item.inputs.push_back(TextOf(element));
      } else {
        item.inputs.push_back(TextOf(node));
      }
      items.push_back(std::move(item));
    }
    return items;
  }

 private:
  static std::string TextOf(const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    std::stringstream out;
    node.visit([&](const auto& value) {
      if constexpr (toml::is_value<decltype(value)>) out << value.get();
    });
    return out.str();
  }
};

}  // namespace

std::filesystem::path DefaultDataDir() {
  const char* data_home = std::getenv("XDG_DATA_HOME");
  if (data_home != nullptr && *data_home == '/')
    return std::filesystem::path(data_home) / "normlab";
  return Home() / ".local" / "share" / "normlab";
}

std::variant<Config, int> ReadConfig(int argc, const char* const* argv) {
  Config config;
  CLI::App app("normlabd: queues, trains and stores normlab's runs", "normlabd");
  app.footer(kFooter);
  app.set_version_flag("--version", NORMLAB_VERSION);
  app.config_formatter(std::make_shared<TomlConfig>());
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "", "configuration file (TOML)")->envname("NORMLAB_CONFIG");
  config.data_dir = DefaultDataDir();
  app.add_option("--data-dir", config.data_dir, "folder of everything that is kept")
      ->envname("NORMLAB_DATA_DIR")
      ->capture_default_str();
  app.add_option("--http", config.http, "address of dashboard and JSON API; port 0: a free one")
      ->envname("NORMLAB_HTTP")
      ->capture_default_str();
  app.add_option("--grpc", config.grpc, "address of the gRPC API; port 0: a free one")
      ->envname("NORMLAB_GRPC")
      ->capture_default_str();
  app.add_option("--socket", config.socket, "unix socket (default: in the data folder)")
      ->envname("NORMLAB_SOCKET");
  app.add_option(
         "--cpu-slots", config.cpu_slots,
         "runs that may use the CPU at a time, one thread each; more than there are cores share "
         "them (0: one for each core)")
      ->envname("NORMLAB_CPU_SLOTS")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--gpus", config.gpus,
                 "whether runs may use GPUs: auto (if the trainer was built for them), on or off")
      ->envname("NORMLAB_GPUS")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--allowed-hosts", config.allowed_hosts,
                 "further host names under which browsers reach this server")
      ->envname("NORMLAB_ALLOWED_HOSTS")
      ->delimiter(',');
  app.add_option("--cancel-grace", config.cancel_grace_seconds,
                 "seconds between asking a trainer to end and killing it")
      ->envname("NORMLAB_CANCEL_GRACE")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--checkpoint-grace", config.checkpoint_grace_seconds,
                 "seconds for a trainer whose time is over, or that makes room, to write its "
                 "checkpoint before it is asked to end")
      ->envname("NORMLAB_CHECKPOINT_GRACE")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--on-stop", config.on_stop,
                 "what a stop of the server does to runs that train: leave (they go on, and the "
                 "next server takes them over) or checkpoint (they write a checkpoint and go back "
                 "into the queue)")
      ->envname("NORMLAB_ON_STOP")
      ->check(CLI::IsMember({"leave", "checkpoint"}))
      ->capture_default_str();
  app.add_option("--stop-wait", config.stop_wait_seconds,
                 "seconds that a stop waits for those checkpoints; a second signal ends the wait")
      ->envname("NORMLAB_STOP_WAIT")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--wal-notice", config.wal_notice_mib,
                 "MiB of the database's write-ahead log from which it is told who is in its way")
      ->envname("NORMLAB_WAL_NOTICE")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--wal-limit", config.wal_limit_mib,
                 "MiB of that log from which points wait in the spools of their runs")
      ->envname("NORMLAB_WAL_LIMIT")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--heartbeat", config.heartbeat_seconds,
                 "seconds after which an idle event stream says that it is alive")
      ->envname("NORMLAB_HEARTBEAT")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.add_option("--stall-timeout", config.stall_timeout_seconds,
                 "seconds after which an event stream is ended whose reader takes nothing")
      ->envname("NORMLAB_STALL_TIMEOUT")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.add_option("--log-level", config.log_level, "trace, debug, info, warning, error or off")
      ->envname("NORMLAB_LOG_LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}))
      ->capture_default_str();
  app.add_option("--trainer", config.trainer, "program that trains (default: beside this one)")
      ->envname("NORMLAB_TRAINER");
  app.add_option("--shepherd", config.shepherd,
                 "program that watches over trainers (default: beside this one)")
      ->envname("NORMLAB_SHEPHERD");
  app.add_option("--warm-trainers", config.warm_trainers,
                 "trainers that wait, loaded, so that runs start sooner; each takes memory, see "
                 "docs/operating.md (default: 1, or 0 with a --trainer of your own)")
      ->envname("NORMLAB_WARM_TRAINERS")
      ->check(CLI::Range(0, 64));
  app.add_option("--texts", config.texts,
                 "folder of texts besides that in the data folder (default: "
                 "../share/normlab/texts from this program)")
      ->envname("NORMLAB_TEXTS");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  config.data_dir = std::filesystem::absolute(config.data_dir).lexically_normal();
  return config;
}

}  // namespace normlab::server
