// What is wrong with the runs of one request, told in a bounded number of lines.
#ifndef NORMLAB_SERVER_APP_RUN_VIOLATIONS_H_
#define NORMLAB_SERVER_APP_RUN_VIOLATIONS_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/base/strings.h"
#include "server/domain/violations.h"

namespace normlab::app {

// A fault that several runs share is one line that names the first of them.
//
//   violations.Add(3, "heads=5", domain::CheckSpec(...));
//   violations.Shown();
//   // experiment.runs[3].spec.heads: ...; run "heads=5" and 11 others
class RunViolations {
 public:
  static constexpr size_t kMostShown = 20;

  // What is wrong with the index-th run; `name` may be empty.
  void Add(size_t index, const std::string& name,
           const std::vector<domain::FieldViolation>& violations) {
    for (const domain::FieldViolation& violation : violations) {
      const auto [found, is_new] =
          places_.emplace(std::pair(violation.field, violation.description), faults_.size());
      if (is_new) {
        faults_.push_back({index, name, violation});
      } else {
        ++faults_[found->second].others;
      }
    }
  }

  bool empty() const { return faults_.empty(); }

  std::vector<domain::FieldViolation> Shown() const {
    std::vector<domain::FieldViolation> shown;
    for (const Fault& fault : faults_) {
      if (shown.size() == kMostShown) {
        shown.push_back({"experiment.runs",
                         StrCat("and ", faults_.size() - kMostShown, " other faults of its runs")});
        break;
      }
      shown.push_back({StrCat("experiment.runs[", fault.index, "].", fault.violation.field),
                       fault.violation.description + Whose(fault)});
    }
    return shown;
  }

 private:
  struct Fault {
    size_t index;
    std::string name;
    domain::FieldViolation violation;
    size_t others = 0;
  };

  static std::string Whose(const Fault& fault) {
    const std::string others =
        fault.others == 0 ? ""
                          : StrCat(" and ", fault.others, fault.others == 1 ? " other" : " others");
    if (!fault.name.empty()) return StrCat("; run \"", fault.name, "\"", others);
    return others.empty() ? "" : StrCat("; this run", others);
  }

  std::vector<Fault> faults_;
  std::map<std::pair<std::string, std::string>, size_t> places_;  // by field and words, in faults_
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_RUN_VIOLATIONS_H_
