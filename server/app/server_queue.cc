// The part of the api that tells of the queue.
#include <algorithm>

#include "server/app/server_api.h"
#include "server/base/strings.h"
#include "server/domain/violations.h"

namespace normlab::app {

void ServerApi::Complete(v1::Run& run) {
  parts_.progress.Complete(run);
  parts_.dispatcher.queue().Complete(run);
}

absl::StatusOr<v1::Queue> ServerApi::GetQueue(const Principal&,
                                              const v1::GetQueueRequest& request) {
  constexpr int32_t kDefault = 100, kLargest = 10'000;
  if (request.page_size() < 0) {
    return domain::InvalidFields(
        {{"page_size", StrCat(request.page_size(), " is negative; use 1 to ", kLargest)}});
  }
  const int32_t size =
      request.page_size() == 0 ? kDefault : std::min(request.page_size(), kLargest);
  return parts_.dispatcher.queue().Describe(static_cast<size_t>(size));
}

}  // namespace normlab::app
