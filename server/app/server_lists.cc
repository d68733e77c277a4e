// The part of the api that lists runs.
#include <string>
#include <utility>

#include "server/app/requests.h"
#include "server/app/run_page_token.h"
#include "server/app/server_api.h"
#include "server/base/strings.h"
#include "server/storage/run_list.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

constexpr char kArchived[] = "archived";

// All that pages of one list have in common, as text.
std::string QuestionOf(const v1::ListRunsRequest& request) {
  v1::ListRunsRequest question = request;
  question.clear_page_token();
  question.clear_page_size();
  return question.SerializeAsString();
}

absl::StatusOr<storage::RunListQuery> QueryOf(const v1::ListRunsRequest& request) {
  storage::RunListQuery query;
  absl::StatusOr<domain::Filter> filter = domain::ParseFilter(request.filter());
  if (!filter.ok()) return filter.status();
  query.filter = *std::move(filter);
  query.archived = domain::Mentions(query.filter, kArchived);
  query.experiment = request.experiment();
  for (const int state : request.states()) {
    if (!v1::Run::State_IsValid(state) || state == v1::Run::STATE_UNSPECIFIED) {
      return domain::InvalidFields({{"states", StrCat(state, " is not a state of runs")}});
    }
    query.states.push_back(static_cast<v1::Run::State>(state));
  }
  absl::StatusOr<std::vector<domain::RunOrder>> order = domain::ParseRunOrder(request.order_by());
  if (!order.ok()) return order.status();
  query.order = *std::move(order);
  if (request.page_token().empty()) return query;
  absl::StatusOr<storage::RunListKey> after =
      ReadPageToken(QuestionOf(request), request.page_token());
  if (!after.ok()) return after.status();
  query.after = *std::move(after);
  return query;
}

}  // namespace

absl::StatusOr<v1::ListRunsResponse> ServerApi::ListRuns(const Principal&,
                                                         const v1::ListRunsRequest& request) {
  const absl::StatusOr<int> size = PageSize(request.page_size());
  if (!size.ok()) return size.status();
  absl::StatusOr<storage::RunListQuery> query = QueryOf(request);
  if (!query.ok()) return query.status();
  query->limit = *size;
  v1::ListRunsResponse response;
  absl::Status status = parts_.store.Read([&](storage::Database& database) -> absl::Status {
    const absl::StatusOr<storage::RunListPage> page = storage::ListRunIds(database, *query);
    if (!page.ok()) return page.status();
    const absl::StatusOr<int64_t> total = storage::CountRuns(database, *query);
    if (!total.ok()) return total.status();
    response.set_total_size(*total);
    if (page->next) response.set_next_page_token(MakePageToken(QuestionOf(request), *page->next));
    for (const std::string& id : page->ids) {
      absl::StatusOr<v1::Run> run = storage::ReadRun(database, id);
      if (!run.ok()) return run.status();
      *response.add_runs() = *std::move(run);
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  for (v1::Run& run : *response.mutable_runs()) Complete(run);
  return response;
}

}  // namespace normlab::app
