// A file of the dashboard as an answer.
#ifndef NORMLAB_SERVER_HTTP_STATIC_FILE_H_
#define NORMLAB_SERVER_HTTP_STATIC_FILE_H_

#include <string_view>

#include "server/http/answer.h"
#include "server/http/options.h"

namespace normlab::http {

// 304 if the client has it (`if_none_match`), gzip if the client takes it (`accept_encoding`).
Answer StaticAnswer(const StaticFile& file, std::string_view if_none_match,
                    std::string_view accept_encoding);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_STATIC_FILE_H_
