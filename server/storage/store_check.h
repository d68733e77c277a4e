// Whether a database holds what it should.
#ifndef NORMLAB_SERVER_STORAGE_STORE_CHECK_H_
#define NORMLAB_SERVER_STORAGE_STORE_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/storage/sqlite.h"

namespace normlab::storage {

// Reads all of a copy of a store: its pages and indexes, its references, its points against what
// attempts, journal and levels say about them. One sentence a fault, a few of each kind; empty when
// all is well. Writes into the copy and takes it back; nobody else may use it.
absl::StatusOr<std::vector<std::string>> CheckStore(Database& copy);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_STORE_CHECK_H_
