#include "server/domain/nearest.h"

#include <algorithm>
#include <cstddef>

namespace normlab::domain {
namespace {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> edits(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) edits[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[a.size()][b.size()];
}

// learning_rate -> lr: how people abbreviate.
std::string Initials(std::string_view name) {
  std::string initials;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i == 0 || name[i - 1] == '_') initials += name[i];
  }
  return initials;
}

// How far `written` is from the real `name`; less is nearer. Abbreviations, and names that hold one
// another (n_layers, batch), are near whatever their edit distance is.
double NameDistance(const std::string& written, const std::string& name) {
  if (name.find('_') != std::string::npos && written == Initials(name)) return 0.5;
  const double edits = static_cast<double>(EditDistance(written, name));
  const bool holds = written.size() >= 3 && (name.find(written) != std::string::npos ||
                                             written.find(name) != std::string::npos);
  return holds ? std::min(edits, 1.0 + edits / 100.0) : edits;
}

}  // namespace

std::string Underscored(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

std::optional<std::string> NearestOf(std::string_view written_as,
                                     const std::vector<std::string>& candidates) {
  const std::string written = Underscored(written_as);
  // Nobody mistypes a name of a hundred letters; the work grows with its length.
  if (written.size() < 2 || written.size() > 100 || candidates.empty()) return std::nullopt;
  const std::string* best = nullptr;
  double best_distance = 0;
  for (const std::string& candidate : candidates) {
    const double distance = NameDistance(written, Underscored(candidate));
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  // Beyond a third of its letters wrong, a suggestion is noise.
  const double limit = std::max(1.0, static_cast<double>(written.size()) / 3.0);
  return best_distance <= limit ? std::optional(*best) : std::nullopt;
}

}  // namespace normlab::domain
