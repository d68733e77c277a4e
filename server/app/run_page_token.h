// Tokens of pages of run lists: where the page before ended, and of which question.
#ifndef NORMLAB_SERVER_APP_RUN_PAGE_TOKEN_H_
#define NORMLAB_SERVER_APP_RUN_PAGE_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/storage/run_list.h"

namespace normlab::app {

// `question` is all that the pages of one list have in common: filter, order and the like.
std::string MakePageToken(std::string_view question, const storage::RunListKey& key);

// INVALID_ARGUMENT names the field `page_token` when the token is none of this server's or belongs
// to another question.
absl::StatusOr<storage::RunListKey> ReadPageToken(std::string_view question,
                                                  const std::string& token);

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_RUN_PAGE_TOKEN_H_
