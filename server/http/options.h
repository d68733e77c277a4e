// What an HttpServer is told at its start.
#ifndef NORMLAB_SERVER_HTTP_OPTIONS_H_
#define NORMLAB_SERVER_HTTP_OPTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::http {

// A file of the dashboard; its text lives as long as the server.
struct StaticFile {
  std::string_view content_type;  // with its charset
  std::string_view etag;          // quoted, of the uncompressed content
  std::string_view bytes;
  bool gzip = false;       // `bytes` is gzip
  bool immutable = false;  // its name holds a hash of its content
};

struct HttpOptions {
  std::string host = "127.0.0.1";  // address or name to listen on
  uint16_t port = 8710;            // 0 takes a free one

  // Further names under which the server may be addressed: "lab.example.org:8710", or with the
  // scheme that browsers use ("https://lab.example.org" behind a proxy with TLS). The address that
  // a connection came in on, and localhost, are allowed anyway.
  std::vector<std::string> allowed_hosts = {};

  // The file at a URL path ("/", "/assets/index-Xy12.js"). May be empty: then there is no page.
  std::function<std::optional<StaticFile>(std::string_view path)> static_file = {};
  // The answer of GET /api/v1/settings.
  std::function<std::string()> settings_json = {};

  size_t max_connections = 1024;
  size_t max_header_bytes = 16 * 1024;
  size_t max_body_bytes = 1024 * 1024;

  std::chrono::milliseconds heartbeat = std::chrono::seconds(15);       // of an idle event stream
  // A reader of an event stream is let go when it takes nothing for `stall_timeout` while
  // `stall_bytes` wait for it, which is the size of its socket's buffer.
  std::chrono::milliseconds stall_timeout = std::chrono::seconds(30);
  size_t stall_bytes = 128 * 1024;
  // Events that are published within this time go to a stream together.
  std::chrono::milliseconds round = std::chrono::milliseconds(10);
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(75);    // between two requests
  std::chrono::milliseconds header_timeout = std::chrono::seconds(10);  // from its first byte
  std::chrono::milliseconds body_timeout = std::chrono::seconds(30);
  // For each 64 KiB: a slow reader goes on, a dead one is let go.
  std::chrono::milliseconds write_timeout = std::chrono::seconds(60);
  // How long Stop lets answers and streams end by themselves.
  std::chrono::milliseconds stop_grace = std::chrono::seconds(2);
};

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_OPTIONS_H_
