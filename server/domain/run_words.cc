#include "server/domain/run_words.h"

#include <algorithm>
#include <set>

#include "server/base/strings.h"
#include "server/domain/utf8.h"

namespace normlab::domain {
namespace {

constexpr size_t kMostLabels = 50;
constexpr size_t kLongestLabel = 100;     // bytes
constexpr size_t kLongestNotes = 10'000;  // bytes

// What is wrong with one label; "" when nothing is.
std::string LabelFault(const std::string& label) {
  if (label.empty()) return "is empty; a label has 1 to 100 bytes";
  if (label.size() > kLongestLabel) {
    return StrCat("is ", label.size(), " bytes long; a label has at most ", kLongestLabel);
  }
  if (!IsUtf8(label)) return "is not UTF-8 text";
  if (FindControl(label) != std::string::npos) {
    return "has a control character (a line break, a tab, ...); remove it";
  }
  return "";
}

}  // namespace

std::vector<FieldViolation> CheckLabels(std::string_view field,
                                        const std::vector<std::string>& labels) {
  std::vector<FieldViolation> wrong;
  if (labels.size() > kMostLabels) {
    wrong.push_back({std::string(field),
                     StrCat("has ", labels.size(), " labels; a run has at most ", kMostLabels)});
    return wrong;
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < labels.size(); ++i) {
    std::string fault = LabelFault(labels[i]);
    if (fault.empty() && !seen.insert(labels[i]).second) fault = "is there already";
    if (!fault.empty()) wrong.push_back({StrCat(field, "[", i, "]"), std::move(fault)});
  }
  return wrong;
}

std::vector<FieldViolation> CheckNotes(std::string_view field, std::string_view notes) {
  const std::string where(field);
  if (notes.size() > kLongestNotes) {
    return {
        {where, StrCat("is ", notes.size(), " bytes long; notes have at most ", kLongestNotes)}};
  }
  if (!IsUtf8(notes)) return {{where, "is not UTF-8 text"}};
  std::string text(notes);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  if (FindControl(text) != std::string::npos) {
    return {{where, "has a control character that is no line break or tab; remove it"}};
  }
  return {};
}

}  // namespace normlab::domain
