// Settings on the command line, made from their declarations: --layers 6, --learning-rate 2e-3
// (also --learning_rate), --set KEY=VALUE.
#ifndef NORMLAB_CLIENT_SETTINGS_FLAGS_H_
#define NORMLAB_CLIENT_SETTINGS_FLAGS_H_

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/term/terminal.h"
#include "normlab/v1/run_spec.pb.h"

namespace normlab::client {

class SettingsFlags {
 public:
  // Adds the flags, out of sight of --help: there are too many; --help-settings shows them.
  void AddTo(CLI::App& command);

  // Reads what was given into `spec`; --set wins over a flag. The error names the setting.
  absl::Status Apply(normlab::v1::RunSpec& spec) const;

  // Whether --help-settings was given; then PrintHelp is what the command does.
  bool wants_help() const { return help_; }
  void PrintHelp(Terminal& terminal, bool json) const;

 private:
  std::map<std::string, std::string> given_;  // by setting; empty when not on the command line
  std::map<std::string, CLI::Option*> options_;
  std::vector<std::string> assignments_;
  bool help_ = false;
  bool markdown_ = false;
};

// "--learning-rate": how a setting is written on the command line.
std::string FlagName(const std::string& setting);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_SETTINGS_FLAGS_H_
