// What all connections of a server share.
#ifndef NORMLAB_SERVER_HTTP_SERVER_CONTEXT_H_
#define NORMLAB_SERVER_HTTP_SERVER_CONTEXT_H_

#include "server/app/api.h"
#include "server/http/access.h"
#include "server/http/api_pool.h"
#include "server/http/options.h"

namespace normlab::http {

struct ServerContext {
  app::Api& api;
  const HttpOptions options;
  const AllowedHosts hosts;
  ApiPool pool;
};

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_SERVER_CONTEXT_H_
