#include "client/experiment_ref.h"

#include <fmt/format.h>

#include <cctype>
#include <vector>

#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::Experiment;
using normlab::v1::ExperimentService;
using normlab::v1::ListExperimentsRequest;
using normlab::v1::ListExperimentsResponse;

}  // namespace

absl::StatusOr<std::string> ResolveExperiment(ApiClient& client, const std::string& text) {
  constexpr size_t kShown = 10;
  std::string prefix = text;
  for (char& c : prefix) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::vector<Experiment> named, prefixed;
  ListExperimentsRequest request;
  request.set_page_size(1000);
  do {
    const absl::StatusOr<ListExperimentsResponse> page =
        client.Call(client.experiments(), &ExperimentService::Stub::ListExperiments, request);
    if (!page.ok()) return page.status();
    for (const Experiment& one : page->experiments()) {
      if (one.display_name() == text) named.push_back(one);
      if (one.id().starts_with(prefix)) prefixed.push_back(one);
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  const std::vector<Experiment>& candidates = named.empty() ? prefixed : named;
  if (candidates.size() == 1) return candidates.front().id();
  if (candidates.empty()) {
    return absl::NotFoundError(fmt::format("there is no experiment \"{}\"", Clean(text)));
  }
  std::string message = fmt::format("\"{}\" is more than one experiment:", Clean(text));
  for (size_t i = 0; i < candidates.size() && i < kShown; ++i) {
    message += fmt::format("\n  {}  {}", candidates[i].id(), Clean(candidates[i].display_name()));
  }
  if (candidates.size() > kShown) {
    message += fmt::format("\n  and {} more", candidates.size() - kShown);
  }
  return absl::FailedPreconditionError(message);
}

}  // namespace normlab::client
