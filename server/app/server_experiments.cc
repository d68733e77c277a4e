// The part of the api that makes and reads experiments.
#include <set>
#include <string>
#include <utility>

#include "server/app/audit_lines.h"
#include "server/app/requests.h"
#include "server/app/run_violations.h"
#include "server/app/server_api.h"
#include "server/app/submit_checks.h"
#include "server/base/strings.h"
#include "server/domain/presets.h"
#include "server/domain/sweep.h"
#include "server/storage/experiments.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using domain::FieldViolation;

absl::StatusOr<std::vector<v1::Run>> RunsOfPreset(const v1::CreateExperimentRequest& request,
                                                  const v1::Preset& preset) {
  if (auto wrong = domain::CheckOverrides(preset, request.overrides()); !wrong.empty()) {
    return domain::InvalidFields(wrong);
  }
  std::vector<v1::Run> wanted;
  std::set<std::string> chosen;
  for (const v1::Run& run : request.experiment().runs()) chosen.insert(run.display_name());
  const bool all = chosen.empty();
  for (const v1::PresetRun& preset_run : preset.runs()) {
    const std::string own_name =
        domain::FillName(preset_run.display_name(), domain::EffectiveSpec(preset_run.spec()));
    if (!all && chosen.erase(own_name) == 0) continue;
    v1::Run run;
    run.set_display_name(preset_run.display_name());
    run.set_colour(preset_run.colour());
    *run.mutable_spec() = domain::MergeSpecs(preset_run.spec(), request.overrides());
    wanted.push_back(std::move(run));
  }
  if (!chosen.empty()) {
    return domain::InvalidFields(
        {{"experiment.runs",
          StrCat("preset ", preset.name(), " has no run '", *chosen.begin(), "'")}});
  }
  return wanted;
}

absl::StatusOr<std::vector<v1::Run>> RunsOfSweep(const v1::CreateExperimentRequest& request) {
  std::vector<FieldViolation> wrong;
  if (!request.experiment().runs().empty()) {
    wrong.push_back({"experiment.runs", "a sweep makes its runs itself; give one of the two"});
  }
  if (request.overrides().ByteSizeLong() > 0) {
    wrong.push_back({"overrides", "are for a preset; give them as experiment.sweep.base"});
  }
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  absl::StatusOr<std::vector<domain::SweepRun>> runs =
      domain::ExpandSweep(request.experiment().sweep());
  if (!runs.ok()) {
    for (FieldViolation& violation : domain::Violations(runs.status())) {
      wrong.push_back({"experiment." + violation.field, std::move(violation.description)});
    }
    return domain::InvalidFields(wrong);
  }
  std::vector<v1::Run> wanted;
  for (domain::SweepRun& made : *runs) {
    v1::Run run;
    run.set_display_name(std::move(made.name));
    *run.mutable_spec() = std::move(made.spec);
    wanted.push_back(std::move(run));
  }
  return wanted;
}

absl::StatusOr<std::vector<v1::Run>> RunsGiven(const v1::CreateExperimentRequest& request) {
  std::vector<v1::Run> wanted;
  for (const v1::Run& given : request.experiment().runs()) {
    v1::Run run = given;
    run.clear_colour();
    *run.mutable_spec() = domain::MergeSpecs(given.spec(), request.overrides());
    wanted.push_back(std::move(run));
  }
  if (wanted.empty()) {
    return domain::InvalidFields(
        {{"experiment", "has no preset, no sweep and no runs; give one of the three"}});
  }
  if (wanted.size() > domain::kLargestExperiment) {
    return domain::InvalidFields(
        {{"experiment.runs", StrCat(wanted.size(), " runs are too many")}});
  }
  return wanted;
}

absl::StatusOr<const v1::Preset*> PresetOf(const v1::CreateExperimentRequest& request) {
  const v1::Experiment& wanted = request.experiment();
  if (wanted.preset().empty()) return nullptr;
  if (wanted.has_sweep()) {
    return domain::InvalidFields(
        {{"experiment.sweep", "a preset has its own runs; give one of the two"}});
  }
  if (const v1::Preset* preset = domain::FindPreset(wanted.preset())) return preset;
  std::string names;
  for (const v1::Preset& known : domain::Presets()) {
    StrAppend(&names, names.empty() ? "" : ", ", known.name());
  }
  return domain::InvalidFields(
      {{"experiment.preset",
        StrCat("there is no preset '", wanted.preset(), "'; there is: ", names)}});
}

std::string NameOf(const v1::Experiment& wanted) {
  if (!wanted.display_name().empty()) return wanted.display_name();
  if (!wanted.preset().empty()) return wanted.preset();
  return wanted.has_sweep() ? "sweep" : "experiment";
}

}  // namespace

absl::StatusOr<std::vector<v1::Run>> ServerApi::PrepareRuns(
    const Principal& principal, const v1::CreateExperimentRequest& request) {
  const absl::StatusOr<const v1::Preset*> preset = PresetOf(request);
  if (!preset.ok()) return preset.status();
  const bool is_sweep = request.experiment().has_sweep();
  absl::StatusOr<std::vector<v1::Run>> wanted = *preset != nullptr ? RunsOfPreset(request, **preset)
                                                : is_sweep         ? RunsOfSweep(request)
                                                                   : RunsGiven(request);
  if (!wanted.ok()) return wanted.status();
  std::vector<FieldViolation> wrong =
      domain::CheckDisplayName("experiment.display_name", NameOf(request.experiment()));
  for (v1::Run& run : *wanted) {
    if (run.device().empty()) run.set_device(request.device());
    ApplyDefaults(request, run);
  }
  RunViolations of_runs;
  std::vector<v1::Run> runs;
  for (size_t i = 0; i < wanted->size(); ++i) {
    std::vector<FieldViolation> of_run;
    v1::Run run = Prepare(principal, (*wanted)[i], "", of_run);
    if (*preset != nullptr) {
      // Its own settings are fine, so what is wrong with its first run is the overrides' and the
      // same in all.
      wrong.insert(wrong.end(), of_run.begin(), of_run.end());
      if (!wrong.empty()) break;
      run.set_colour((*wanted)[i].colour());
      run.set_display_name(domain::FillName(run.display_name(), run.effective_spec()));
    }
    of_runs.Add(i, (*wanted)[i].display_name(), of_run);
    runs.push_back(std::move(run));
  }
  for (FieldViolation& violation : of_runs.Shown()) wrong.push_back(std::move(violation));
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  return runs;
}

absl::StatusOr<v1::Experiment> ServerApi::CreateExperiment(
    const Principal& principal, const v1::CreateExperimentRequest& request) {
  if (absl::Status status = MayChange(principal); !status.ok()) return status;
  absl::StatusOr<std::vector<v1::Run>> runs = PrepareRuns(principal, request);
  if (!runs.ok()) return runs.status();
  const bool is_preset = !request.experiment().preset().empty();
  const auto prefix_of = [is_preset](size_t i) {
    return is_preset ? std::string() : StrCat("experiment.runs[", i, "].");
  };
  for (size_t i = 0; i < runs->size(); ++i) {
    const std::string field = prefix_of(i) + "priority";
    if (auto may = MayGive(principal, field, (*runs)[i].priority()); !may.ok()) return may;
  }
  const auto check = [&](storage::Database& database) {
    return CheckQueueWords(database, *runs, prefix_of);
  };
  v1::Experiment experiment;
  experiment.set_display_name(NameOf(request.experiment()));
  experiment.set_preset(request.experiment().preset());
  experiment.set_user(principal.user);
  if (request.experiment().has_sweep()) *experiment.mutable_sweep() = request.experiment().sweep();
  if (request.validate_only()) {
    if (absl::Status may = parts_.store.Read(check); !may.ok()) return may;
    for (v1::Run& run : *runs) *experiment.add_runs() = std::move(run);
    return experiment;
  }
  experiment.set_id(ids_.Next(parts_.clock.WallMicros()));
  for (v1::Run& run : *runs) {
    run.set_experiment(experiment.id());
    run.set_id(ids_.Next(parts_.clock.WallMicros()));
  }
  if (absl::Status kept = KeepInits(*runs); !kept.ok()) return kept;
  absl::StatusOr<v1::Experiment> stored;
  absl::Status status = parts_.store.writer().Write([&](storage::WriteContext& context) {
    if (absl::Status may = check(context.database); !may.ok()) return may;
    const domain::Actor who = principal.actor();
    absl::Status written = storage::InsertExperiment(context, experiment);
    if (written.ok()) {
      written = storage::WriteAudit(context, who, CreationLine(experiment, runs->size()));
    }
    if (!written.ok()) return written;
    stored = storage::ReadExperiment(context.database, experiment.id());
    if (!stored.ok()) return stored.status();
    for (const v1::Run& run : *runs) {
      written = storage::InsertRun(context, run, stored->add_runs());
      if (written.ok()) written = storage::WriteAudit(context, who, CreationLine(run));
      if (!written.ok()) return written;
    }
    return absl::OkStatus();
  });
  if (!status.ok()) {
    for (const v1::Run& run : *runs) parts_.files.DropInit(run.id());
    return status;
  }
  parts_.early_stopper.Watch(*stored);
  parts_.dispatcher.Wake();
  return stored;
}

absl::StatusOr<v1::Experiment> ServerApi::GetExperiment(const Principal&,
                                                        const v1::GetExperimentRequest& request) {
  if (absl::Status status = CheckId("experiment", request.id()); !status.ok()) return status;
  absl::StatusOr<v1::Experiment> experiment =
      storage::ReadWholeExperiment(parts_.store, request.id());
  if (!experiment.ok()) return experiment.status();
  for (v1::Run& run : *experiment->mutable_runs()) Complete(run);
  return experiment;
}

absl::StatusOr<v1::ListExperimentsResponse> ServerApi::ListExperiments(
    const Principal&, const v1::ListExperimentsRequest& request) {
  const absl::StatusOr<int> page = PageSize(request.page_size());
  if (!page.ok()) return page.status();
  if (!request.page_token().empty() && !IsUlid(request.page_token())) {
    return domain::InvalidFields({{"page_token", "is not one that this server gave"}});
  }
  absl::StatusOr<std::vector<v1::Experiment>> experiments;
  absl::Status status = parts_.store.Read([&](storage::Database& database) {
    experiments = storage::ReadExperiments(database, request.page_token(), *page + 1);
    return experiments.status();
  });
  if (!status.ok()) return status;
  v1::ListExperimentsResponse response;
  for (v1::Experiment& experiment : *experiments) {
    if (response.experiments_size() == *page) {
      response.set_next_page_token(response.experiments(*page - 1).id());
      break;
    }
    *response.add_experiments() = std::move(experiment);
  }
  return response;
}

absl::StatusOr<v1::ListPresetsResponse> ServerApi::ListPresets(const Principal&) {
  return domain::ListPresets();
}

}  // namespace normlab::app
