#include "server/domain/sweep.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "server/base/strings.h"
#include "server/domain/settings.h"
#include "server/domain/spec.h"
#include "server/domain/sweep_axis.h"
#include "server/domain/varied_settings.h"
#include "server/domain/violations.h"

namespace normlab::domain {
namespace {

constexpr size_t kLongestName = 300;
constexpr int kFruitlessDraws = 10'000;  // in a row: by then there is nothing new to be drawn

// One run in the making.
struct Made {
  v1::RunSpec spec;
  std::string place;  // "sweep.list[2]", or "sweep"
};

class Expander {
 public:
  explicit Expander(const v1::Sweep& sweep) : sweep_(sweep) {}

  absl::StatusOr<std::vector<SweepRun>> Expand() {
    ReadAxes();
    CheckSpecs();
    CheckCounts();
    if (!wrong_.empty()) return InvalidFields(wrong_);
    if (sweep_.samples() > 0) {
      Draw();
    } else {
      Combine();
    }
    if (wrong_.empty()) CheckEarlyStop();
    if (!wrong_.empty()) return InvalidFields(wrong_);
    return Named();
  }

 private:
  void ReadAxes() {
    std::map<std::string, int> seen;
    for (int i = 0; i < sweep_.axes_size(); ++i) {
      const std::string place = StrCat("sweep.axes[", i, "]");
      Axis axis(sweep_.axes(i), sweep_.samples() > 0, place, wrong_);
      if (axis.setting() != nullptr) {
        const auto [first, is_new] = seen.emplace(axis.setting()->name, i);
        if (!is_new) {
          wrong_.push_back({place + ".setting",
                            StrCat(axis.setting()->name, " is axes[", first->second, "] already")});
        }
      }
      axes_.push_back(std::move(axis));
    }
  }

  // The base and the list: values out of range, and entries that set what an axis sets.
  void CheckSpecs() {
    const auto check = [this](const v1::RunSpec& spec, const std::string& place) {
      for (FieldViolation& violation : CheckRanges(spec)) {
        violation.field.replace(0, std::string_view("spec").size(), place);
        wrong_.push_back(std::move(violation));
      }
    };
    check(sweep_.base(), "sweep.base");
    for (int i = 0; i < sweep_.list_size(); ++i) {
      const std::string place = StrCat("sweep.list[", i, "]");
      check(sweep_.list(i), place);
      for (const Axis& axis : axes_) {
        if (axis.setting() == nullptr || !IsSet(sweep_.list(i), axis.setting()->name)) continue;
        wrong_.push_back({StrCat(place, ".", axis.setting()->name), "is the setting of an axis"});
      }
    }
  }

  void CheckCounts() {
    if (sweep_.axes().empty() && sweep_.list().empty()) {
      wrong_.push_back({"sweep", "has no axes and no list: there is nothing to vary"});
    } else if (sweep_.samples() < 0) {
      wrong_.push_back({"sweep.samples", "is negative"});
    } else if (sweep_.samples() > 0 && sweep_.axes().empty()) {
      wrong_.push_back({"sweep.samples", "there are no axes to draw from"});
    }
    if (!wrong_.empty()) return;
    int64_t runs = std::max(1, sweep_.list_size());
    // Never beyond the bound squared, so that nothing overflows.
    const auto multiply = [&runs](int64_t by) {
      runs = std::min(runs, kLargestExperiment + 1) * by;
    };
    if (sweep_.samples() > 0) {
      multiply(sweep_.samples());
    } else {
      for (const Axis& axis : axes_) multiply(static_cast<int64_t>(axis.values().size()));
    }
    if (runs > kLargestExperiment) {
      wrong_.push_back({"sweep", StrCat("makes more than the ", kLargestExperiment,
                                        " runs that an experiment may have")});
    }
  }

  // What each entry of the list, or without one the base alone, begins with.
  std::vector<Made> Starts() const {
    if (sweep_.list().empty()) return {{sweep_.base(), "sweep"}};
    std::vector<Made> starts;
    for (int i = 0; i < sweep_.list_size(); ++i) {
      starts.push_back({MergeSpecs(sweep_.base(), sweep_.list(i)), StrCat("sweep.list[", i, "]")});
    }
    return starts;
  }

  // How the run trains, so that two that do the same are found.
  static std::string Key(const v1::RunSpec& spec) {
    return EffectiveSpec(spec).SerializeAsString();
  }

  void Add(Made made) {
    const auto [first, is_new] = seen_.emplace(Key(made.spec), made_.size());
    made_.push_back(std::move(made));
    if (is_new) return;
    const std::vector<std::string> varied = Varied(/*all_axes=*/true);
    const Made& twin = made_[first->second];
    wrong_.push_back(
        {made_.back().place, StrCat("makes the same run twice: ", NameOf(made_.back().spec, varied),
                                    " trains what ", NameOf(twin.spec, varied), " trains")});
  }

  void Combine() {
    std::vector<size_t> at(axes_.size(), 0);
    for (const Made& start : Starts()) {
      do {
        Made made = start;
        for (size_t i = 0; i < axes_.size(); ++i) axes_[i].values()[at[i]].PutInto(made.spec);
        Add(std::move(made));
        if (!wrong_.empty()) return;
      } while (Advance(at));
    }
  }

  // The next combination, the last axis fastest; false, and the first again, after the last.
  bool Advance(std::vector<size_t>& at) const {
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < axes_[i].values().size()) return true;
      at[i] = 0;
    }
    return false;
  }

  void Draw() {
    std::mt19937_64 generator(sweep_.sample_seed());
    const auto next = [&generator] { return static_cast<double>(generator() >> 11) * 0x1p-53; };
    std::vector<std::vector<AxisValue>> samples;
    std::set<std::string> drawn;
    int fruitless = 0;
    while (static_cast<int>(samples.size()) < sweep_.samples()) {
      std::vector<AxisValue> sample;
      v1::RunSpec spec = sweep_.base();
      for (const Axis& axis : axes_) {
        sample.push_back(axis.At(next()));
        sample.back().PutInto(spec);
      }
      if (drawn.insert(Key(spec)).second) {
        samples.push_back(std::move(sample));
        fruitless = 0;
      } else if (++fruitless == kFruitlessDraws) {
        wrong_.push_back(
            {"sweep.samples", StrCat("after ", samples.size(),
                                     " samples nothing new is drawn; ask for ", samples.size(),
                                     " at most, or for every "
                                     "combination")});
        return;
      }
    }
    for (const Made& start : Starts()) {
      for (const std::vector<AxisValue>& sample : samples) {
        Made made = start;
        for (const AxisValue& value : sample) value.PutInto(made.spec);
        Add(std::move(made));
        if (!wrong_.empty()) return;
      }
    }
  }

  void CheckEarlyStop() {
    if (!sweep_.has_early_stop()) return;
    const v1::EarlyStop& stop = sweep_.early_stop();
    const std::string place = "sweep.early_stop";
    if (stop.steps().empty()) wrong_.push_back({place + ".steps", "names no step"});
    int64_t longest = 0;
    for (const Made& made : made_) {
      longest = std::max(longest, EffectiveSpec(made.spec).steps());
    }
    for (int i = 0; i < stop.steps_size(); ++i) {
      const std::string field = StrCat(place, ".steps[", i, "]");
      if (stop.steps(i) < 1) {
        wrong_.push_back({field, StrCat(stop.steps(i), " is too small; use 1 and more")});
      } else if (i > 0 && stop.steps(i) <= stop.steps(i - 1)) {
        wrong_.push_back({field, "is not above the one before; steps must rise"});
      } else if (stop.steps(i) >= longest) {
        wrong_.push_back({field, StrCat("every run has ended by step ", stop.steps(i),
                                        "; the longest has ", longest, " steps")});
      }
    }
    if (!(stop.quantile() > 0 && stop.quantile() < 1)) {
      wrong_.push_back({place + ".quantile", "must be above 0, below 1"});
    }
    if (stop.minimum_peers() < 0) wrong_.push_back({place + ".minimum_peers", "is negative"});
  }

  // Settings that name a run: the axes in their order, those that do not differ only if `all_axes`,
  // then what else differs.
  std::vector<std::string> Varied(bool all_axes) const {
    std::vector<std::string> names;
    std::vector<v1::RunSpec> specs;
    for (const Made& made : made_) specs.push_back(made.spec);
    if (specs.empty()) return names;
    const std::vector<std::string> differing = VariedSettings(specs);
    for (const Axis& axis : axes_) {
      const std::string& name = axis.setting()->name;
      if (all_axes || std::ranges::find(differing, name) != differing.end()) names.push_back(name);
    }
    for (const std::string& name : differing) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    // A single run is named by all that was given for it.
    if (!names.empty()) return names;
    for (const SettingInfo& setting : Settings()) {
      if (!IsSet(specs.front(), setting.name)) continue;
      if (ValueText(specs.front(), setting.name) != ValueText(sweep_.base(), setting.name)) {
        names.push_back(setting.name);
      }
    }
    return names;
  }

  static std::string NameOf(const v1::RunSpec& spec, const std::vector<std::string>& varied) {
    std::string name;
    for (const std::string& setting : varied) {
      StrAppend(&name, name.empty() ? "" : " ", setting, "=", ValueText(spec, setting));
    }
    return name;
  }

  std::vector<SweepRun> Named() {
    const std::vector<std::string> varied = Varied(/*all_axes=*/false);
    std::vector<SweepRun> runs;
    std::set<std::string> taken;
    for (Made& made : made_) {
      std::string name = NameOf(made.spec, varied);
      // Too long, or "a b=1" of one setting for a and b of another: told apart by its number.
      if (name.size() > kLongestName || !taken.insert(name).second) {
        name = StrCat("run ", runs.size() + 1, " of ", made_.size());
        taken.insert(name);
      }
      runs.push_back({std::move(name), std::move(made.spec)});
    }
    return runs;
  }

  const v1::Sweep& sweep_;
  std::vector<FieldViolation> wrong_;
  std::vector<Axis> axes_;
  std::vector<Made> made_;
  std::map<std::string, size_t> seen_;  // by how they train, in made_
};

}  // namespace

absl::StatusOr<std::vector<SweepRun>> ExpandSweep(const v1::Sweep& sweep) {
  return Expander(sweep).Expand();
}

}  // namespace normlab::domain
