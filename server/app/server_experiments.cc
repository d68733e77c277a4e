// The part of the api that makes and reads experiments.
#include <set>
#include <string>
#include <utility>

#include "server/app/requests.h"
#include "server/app/server_api.h"
#include "server/base/strings.h"
#include "server/domain/presets.h"
#include "server/storage/experiments.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using domain::FieldViolation;

constexpr int kLargestExperiment = 10'000;

}  // namespace

absl::StatusOr<std::vector<v1::Run>> ServerApi::RunsOf(const v1::CreateExperimentRequest& request,
                                                       const v1::Preset* preset) {
  std::vector<v1::Run> wanted;
  if (preset != nullptr) {
    if (auto wrong = domain::CheckOverrides(*preset, request.overrides()); !wrong.empty()) {
      return domain::InvalidFields(wrong);
    }
    std::set<std::string> chosen;
    for (const v1::Run& run : request.experiment().runs()) chosen.insert(run.display_name());
    const bool all = chosen.empty();
    for (const v1::PresetRun& preset_run : preset->runs()) {
      const std::string own_name =
          domain::FillName(preset_run.display_name(), domain::EffectiveSpec(preset_run.spec()));
      if (!all && chosen.erase(own_name) == 0) continue;
      v1::Run run;
      run.set_display_name(preset_run.display_name());
      run.set_colour(preset_run.colour());
      *run.mutable_spec() = domain::MergeSpecs(preset_run.spec(), request.overrides());
      run.set_device(request.device());
      wanted.push_back(std::move(run));
    }
    if (!chosen.empty()) {
      return domain::InvalidFields(
          {{"experiment.runs",
            StrCat("preset ", preset->name(), " has no run '", *chosen.begin(), "'")}});
    }
    return wanted;
  }
  for (const v1::Run& given : request.experiment().runs()) {
    v1::Run run = given;
    run.clear_colour();
    *run.mutable_spec() = domain::MergeSpecs(given.spec(), request.overrides());
    if (run.device().empty()) run.set_device(request.device());
    wanted.push_back(std::move(run));
  }
  if (wanted.empty()) {
    return domain::InvalidFields(
        {{"experiment", "names no preset and has no runs; give one of the two"}});
  }
  if (wanted.size() > kLargestExperiment) {
    return domain::InvalidFields(
        {{"experiment.runs", StrCat(wanted.size(), " runs are too many")}});
  }
  return wanted;
}

absl::StatusOr<v1::Experiment> ServerApi::CreateExperiment(
    const Principal& principal, const v1::CreateExperimentRequest& request) {
  if (absl::Status status = MayChange(principal); !status.ok()) return status;
  v1::Experiment experiment;
  const v1::Preset* preset = nullptr;
  if (!request.experiment().preset().empty()) {
    preset = domain::FindPreset(request.experiment().preset());
    if (preset == nullptr) {
      std::string names;
      for (const v1::Preset& known : domain::Presets()) {
        StrAppend(&names, names.empty() ? "" : ", ", known.name());
      }
      return domain::InvalidFields(
          {{"experiment.preset", StrCat("there is no preset '", request.experiment().preset(),
                                        "'; there is: ", names)}});
    }
    experiment.set_preset(preset->name());
  }
  absl::StatusOr<std::vector<v1::Run>> wanted = RunsOf(request, preset);
  if (!wanted.ok()) return wanted.status();
  experiment.set_display_name(!request.experiment().display_name().empty()
                                  ? request.experiment().display_name()
                              : preset != nullptr ? preset->name()
                                                  : std::string("experiment"));
  std::vector<FieldViolation> wrong =
      domain::CheckDisplayName("experiment.display_name", experiment.display_name());
  experiment.set_id(ids_.Next(parts_.clock.WallMicros()));
  experiment.set_user(principal.user);
  std::vector<v1::Run> runs;
  for (size_t i = 0; i < wanted->size(); ++i) {
    // A preset's own settings are fine, so what is wrong with its first run is the overrides' and
    // the same in all.
    v1::Run run = Prepare(principal, (*wanted)[i],
                          preset != nullptr ? "" : StrCat("experiment.runs[", i, "]."), wrong);
    if (preset != nullptr && !wrong.empty()) break;
    if (preset != nullptr) {
      run.set_colour((*wanted)[i].colour());
      run.set_display_name(domain::FillName(run.display_name(), run.effective_spec()));
    }
    run.set_experiment(experiment.id());
    runs.push_back(std::move(run));
  }
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  for (v1::Run& run : runs) run.set_id(ids_.Next(parts_.clock.WallMicros()));
  if (absl::Status kept = KeepInits(runs); !kept.ok()) return kept;
  absl::StatusOr<v1::Experiment> stored;
  absl::Status status = parts_.store.writer().Write([&](storage::WriteContext& context) {
    absl::Status written = storage::InsertExperiment(context, experiment);
    for (const v1::Run& run : runs) {
      if (written.ok()) written = storage::InsertRun(context, run);
    }
    if (!written.ok()) return written;
    stored = storage::ReadExperiment(context.database, experiment.id());
    return stored.status();
  });
  if (!status.ok()) {
    for (const v1::Run& run : runs) parts_.files.DropInit(run.id());
    return status;
  }
  parts_.dispatcher.Wake();
  return stored;
}

absl::StatusOr<v1::Experiment> ServerApi::GetExperiment(const Principal&,
                                                        const v1::GetExperimentRequest& request) {
  if (absl::Status status = CheckId("experiment", request.id()); !status.ok()) return status;
  absl::StatusOr<v1::Experiment> experiment;
  absl::Status status = parts_.store.Read([&](storage::Database& database) {
    experiment = storage::ReadExperiment(database, request.id());
    return experiment.status();
  });
  if (!status.ok()) return status;
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
