#include "server/http/metrics_text.h"

#include <sstream>
#include <string>
#include <vector>

#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace normlab::http {
namespace {

prometheus::MetricFamily Family(prometheus::MetricType type, std::string name, std::string help,
                                double value) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  metric.counter.value = value;
  return {std::move(name), std::move(help), type, {metric}};
}

}  // namespace

std::string MetricsText(const app::ServerMetrics& metrics) {
  constexpr auto kGauge = prometheus::MetricType::Gauge;
  constexpr auto kCounter = prometheus::MetricType::Counter;
  const auto number = [](auto count) { return static_cast<double>(count); };
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(
      text,
      {Family(kGauge, "normlab_queued_runs", "Runs that wait for a device.",
              number(metrics.queued_runs)),
       Family(kGauge, "normlab_active_runs", "Runs that hold a device.",
              number(metrics.active_runs)),
       Family(kGauge, "normlab_watchers", "Open event streams, gRPC and HTTP.",
              number(metrics.watchers)),
       Family(kCounter, "normlab_stalled_watchers_total",
              "Event streams detached because their readers took nothing.",
              number(metrics.stalled_watchers)),
       Family(kCounter, "normlab_points_stored_total", "Points committed since the start.",
              number(metrics.points_stored)),
       Family(kCounter, "normlab_commits_total", "Transactions committed since the start.",
              number(metrics.commits)),
       Family(kGauge, "normlab_sequence", "Sequence of the last commit published.",
              number(metrics.sequence)),
       Family(kGauge, "normlab_uptime_seconds", "Time since the start.", metrics.uptime_seconds)});
  return text.str();
}

}  // namespace normlab::http
