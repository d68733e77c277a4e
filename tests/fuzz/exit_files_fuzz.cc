// The small files by which processes find each other and say how they ended: exit.json of the
// shepherd, endpoint.json of the server. Whatever is in them, the reader says what it found, or
// that it is no such file.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "client/endpoint.h"
#include "server/base/files.h"
#include "server/executor/exit_report.h"
#include "server/trainer/link/endpoint.h"
#include "tests/fakes/temp_dir.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::executor::ExitReport;

void CheckExitReport(const std::filesystem::path& folder) {
  const ExitReport report = normlab::executor::ReadExitReport(folder);
  if (report.lost) {
    REQUIRE(!report.detail.empty());
    return;
  }
  REQUIRE(report.exit_code.has_value() != report.exit_signal.has_value());
  // What waitpid can say, and nothing else.
  if (report.exit_code) REQUIRE(*report.exit_code >= 0 && *report.exit_code <= 255);
  if (report.exit_signal) REQUIRE(*report.exit_signal >= 1 && *report.exit_signal <= 64);
  REQUIRE(report.max_rss_bytes >= 0);
  REQUIRE(std::isfinite(report.cpu_seconds) && report.cpu_seconds >= 0);
}

void CheckEndpoint(const std::filesystem::path& folder) {
  const absl::StatusOr<normlab::client::Endpoint> endpoint =
      normlab::client::ReadEndpointFile(folder);
  const absl::StatusOr<std::vector<std::string>> targets =
      normlab::trainer::ReadTargets(folder / "endpoint.json");
  REQUIRE(endpoint.ok() || absl::IsUnavailable(endpoint.status()));
  REQUIRE(targets.ok() || absl::IsDataLoss(targets.status()));
  if (targets.ok()) {
    REQUIRE(!targets->empty() && !targets->front().empty());
    REQUIRE(endpoint.ok());
    // A file that names a socket sends nobody, with a secret, to a port.
    const bool fits = endpoint->socket.size() < sizeof(sockaddr_un::sun_path);
    if (!endpoint->socket.empty() && fits) {
      REQUIRE(endpoint->target == targets->front() && targets->size() == 1);
    }
  }
  if (endpoint.ok()) REQUIRE(!endpoint->target.empty() && endpoint->pid >= 0);
}

void Replace(const std::filesystem::path& path, std::string_view content) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  REQUIRE(write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  close(file);
}

// In memory where that is possible: each input makes files.
std::filesystem::path Folder() {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  static const auto* folder = new normlab::fakes::TempDir;
  std::atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(folder->path(), ignored);
  });
  return folder->path();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::filesystem::path folder = Folder();
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  Replace(folder / "exit.json", content);
  CheckExitReport(folder);
  Replace(folder / "endpoint.json", content);
  CheckEndpoint(folder);
  return 0;
}
