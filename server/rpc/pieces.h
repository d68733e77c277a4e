// Records of one trainer on their way to the writer, cut into pieces of work. The writer takes
// pieces of all trainers in turn, so a trainer with thousands of series must not come in one; and a
// trainer sends a record at a time as long as its connection takes it, so a piece grows while it
// waits.
#ifndef NORMLAB_SERVER_RPC_PIECES_H_
#define NORMLAB_SERVER_RPC_PIECES_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "normlab/worker/v1/worker.pb.h"

namespace normlab::rpc {

// Consecutive records.
struct Piece {
  uint64_t first = 0;  // sequence of the first record
  std::vector<std::string> records;
  int64_t bytes = 0;

  uint64_t last() const { return first + records.size() - 1; }
  // About: ten bytes of a record are a value and its series, which become a row.
  int64_t rows() const { return bytes / kBytesOfARow; }

  static constexpr int64_t kBytesOfARow = 10;
};

// Not for several threads at a time.
class Pieces {
 public:
  // Rows of a piece at most, about, unless a single record has more.
  static constexpr int64_t kRowsOfAPiece = 2048;

  // Takes the records out of `batch`.
  void Add(worker::v1::RecordBatch& batch) {
    uint64_t sequence = batch.first_sequence();
    for (std::string& record : *batch.mutable_records()) Add(sequence++, std::move(record));
  }
  // The oldest; there must be one.
  Piece Take() {
    Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    bytes_ -= piece.bytes;
    return piece;
  }
  bool empty() const { return pieces_.empty(); }
  int64_t bytes() const { return bytes_; }

 private:
  void Add(uint64_t sequence, std::string record) {
    const auto bytes = static_cast<int64_t>(record.size());
    if (pieces_.empty() || pieces_.back().last() + 1 != sequence ||
        pieces_.back().bytes + bytes > kRowsOfAPiece * Piece::kBytesOfARow) {
      pieces_.push_back({sequence, {}, 0});
    }
    pieces_.back().records.push_back(std::move(record));
    pieces_.back().bytes += bytes;
    bytes_ += bytes;
  }

  std::deque<Piece> pieces_;
  int64_t bytes_ = 0;
};

}  // namespace normlab::rpc

#endif  // NORMLAB_SERVER_RPC_PIECES_H_
