#include "web/embed/assets.h"

#include "web/embed/assets_table.h"

namespace normlab::web {

const Asset* FindAsset(std::string_view path) {
  if (path == "/") path = "/index.html";
  // A dozen files: a scan is as fast as anything.
  for (const Asset& asset : kAssets) {
    if (asset.path == path) return &asset;
  }
  return nullptr;
}

}  // namespace normlab::web
