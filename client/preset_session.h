// A preset from submit to table, files and exit code: what `normlab article` and `normlab preset`
// do.
#ifndef NORMLAB_CLIENT_PRESET_SESSION_H_
#define NORMLAB_CLIENT_PRESET_SESSION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "client/context.h"
#include "client/queue_flags.h"
#include "client/settings_flags.h"

namespace normlab::client {

struct PresetOptions {
  std::string preset;
  std::string command;  // "article", "preset warmup": what the user types after normlab
  SettingsFlags settings;
  QueueFlags queue;
  std::string out;
  std::string name;
  std::string device;
  std::string experiment;         // an earlier one: watch and report it instead of a new one
  std::vector<std::string> only;  // "layers=1,2": a part of the preset's runs
};

// The options that every preset has: settings, what they say to the
// queue, --out, --name, --device, --experiment.
void AddPresetOptions(CLI::App& command, PresetOptions& options, const std::string& files);

// Submits, watches, reports; gives the exit code. Ctrl-C ends the watching and leaves the runs.
int RunPreset(Context& context, const PresetOptions& options);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_PRESET_SESSION_H_
