// The dashboard's files, inside the program.
//
//   if (const web::Asset* asset = web::FindAsset("/")) Send(asset->content_type, asset->bytes);
//
// Everything is constant and lives as long as the program; any thread may call.
#ifndef NORMLAB_WEB_EMBED_ASSETS_H_
#define NORMLAB_WEB_EMBED_ASSETS_H_

#include <string_view>

namespace normlab::web {

struct Asset {
  std::string_view path;          // as in a URL: "/index.html", "/assets/index-Xy12.js"
  std::string_view content_type;  // with its charset
  std::string_view etag;          // quoted, of the uncompressed content
  std::string_view bytes;         // what to send as the body
  bool gzip;                      // the bytes are gzip: send "Content-Encoding: gzip"
  bool immutable;                 // its name holds a hash of its content: may be cached for ever
};

// The file with this URL path (without a query), or nullptr. "/" is the page.
const Asset* FindAsset(std::string_view path);

}  // namespace normlab::web

#endif  // NORMLAB_WEB_EMBED_ASSETS_H_
