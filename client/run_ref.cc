#include "client/run_ref.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "client/term/style.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::ListRunsRequest;
using normlab::v1::ListRunsResponse;
using normlab::v1::Run;
using normlab::v1::RunService;

constexpr size_t kIdLength = 26;
constexpr size_t kCandidatesShown = 10;
constexpr size_t kLongestReference = 300;  // bytes of a name

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

bool LooksLikeId(const std::string& text) {
  return text.size() == kIdLength && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0;
         });
}

absl::Status Ambiguous(const std::string& text, const std::vector<Run>& candidates) {
  std::string message = fmt::format("\"{}\" is more than one run:", Clean(text));
  for (size_t i = 0; i < candidates.size() && i < kCandidatesShown; ++i) {
    message += fmt::format("\n  {}  {}  {}", candidates[i].id(), StateWord(candidates[i].state()),
                           Clean(candidates[i].display_name()));
  }
  if (candidates.size() > kCandidatesShown) {
    message += fmt::format("\n  and {} more", candidates.size() - kCandidatesShown);
  }
  return absl::FailedPreconditionError(message);
}

}  // namespace

absl::StatusOr<std::vector<Run>> ListAllRuns(ApiClient& client, ListRunsRequest request,
                                             int limit) {
  constexpr int kPage = 1000;
  std::vector<Run> runs;
  do {
    const int wanted = limit == 0 ? kPage : limit - static_cast<int>(runs.size());
    request.set_page_size(std::min(kPage, wanted));
    absl::StatusOr<ListRunsResponse> page =
        client.Call(client.runs(), &RunService::Stub::ListRuns, request);
    if (!page.ok()) return page.status();
    for (Run& run : *page->mutable_runs()) runs.push_back(std::move(run));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty() && (limit == 0 || static_cast<int>(runs.size()) < limit));
  return runs;
}

namespace {

// A filter's text in quotes.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

absl::StatusOr<Run> ResolveRun(ApiClient& client, const std::string& text) {
  if (text.empty()) return absl::NotFoundError("an empty name is no run");
  if (LooksLikeId(text)) {
    normlab::v1::GetRunRequest request;
    request.set_id(Upper(text));
    absl::StatusOr<Run> run = client.Call(client.runs(), &RunService::Stub::GetRun, request);
    if (run.ok() || !absl::IsNotFound(run.status())) return run;
  }
  // A name has no control characters, and neither has a filter.
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  if (text.size() > kLongestReference || std::any_of(text.begin(), text.end(), control)) {
    return absl::NotFoundError(fmt::format("there is no run \"{}\"", Clean(text)));
  }
  ListRunsRequest request;
  request.set_filter(fmt::format("archived:* name={0} OR id:{0}", Quoted(text)));
  absl::StatusOr<std::vector<Run>> runs = ListAllRuns(client, request, 0);
  if (!runs.ok()) return runs.status();
  std::vector<Run> named, prefixed;
  const std::string prefix = Upper(text);
  for (const Run& run : *runs) {
    if (run.display_name() == text) named.push_back(run);
    if (run.id().compare(0, prefix.size(), prefix) == 0) prefixed.push_back(run);
  }
  const std::vector<Run>& candidates = named.empty() ? prefixed : named;
  if (candidates.size() == 1) return candidates.front();
  if (candidates.empty()) {
    return absl::NotFoundError(fmt::format("there is no run \"{}\"; see: normlab ls", Clean(text)));
  }
  return Ambiguous(text, candidates);
}

absl::StatusOr<std::vector<Run>> ResolveRuns(ApiClient& client,
                                             const std::vector<std::string>& texts) {
  std::vector<Run> runs;
  for (const std::string& text : texts) {
    absl::StatusOr<Run> run = ResolveRun(client, text);
    if (!run.ok()) return run.status();
    const bool known = std::any_of(runs.begin(), runs.end(),
                                   [&](const Run& other) { return other.id() == run->id(); });
    if (!known) runs.push_back(*std::move(run));
  }
  return runs;
}

std::vector<std::string> ShortIds(const std::vector<Run>& runs) {
  constexpr size_t kTime = 10;
  const auto unique_at = [&runs](size_t length) {
    std::vector<std::string> cut;
    for (const Run& run : runs) cut.push_back(run.id().substr(0, length));
    std::sort(cut.begin(), cut.end());
    return std::adjacent_find(cut.begin(), cut.end()) == cut.end();
  };
  size_t length = kTime;
  while (length < kIdLength && !unique_at(length)) ++length;
  std::vector<std::string> ids;
  for (const Run& run : runs) ids.push_back(run.id().substr(0, length));
  return ids;
}

}  // namespace normlab::client
