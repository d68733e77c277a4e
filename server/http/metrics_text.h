#ifndef NORMLAB_SERVER_HTTP_METRICS_TEXT_H_
#define NORMLAB_SERVER_HTTP_METRICS_TEXT_H_

#include <string>

#include "server/app/api.h"

namespace normlab::http {

// The server's numbers in Prometheus' text format.
std::string MetricsText(const app::ServerMetrics& metrics);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_METRICS_TEXT_H_
