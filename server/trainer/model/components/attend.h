// Attention of any kind: queries from one value and keys from another, a range of visible keys for
// every query, relative positions, and the rounding of a bf16 run. The plain self-attention of an
// fp32 decoder is AttendHeads(), which does nothing else and is faster.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_ATTEND_H_
#define NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_ATTEND_H_

#include <cstdint>
#include <optional>
#include <string>

#include "server/trainer/model/program.h"

namespace normlab::trainer {

// Columns [first, first + d) of a value.
struct Columns {
  Value value;
  int64_t first = 0;
};

// Which keys a query sees.
enum class Sight {
  kAll,
  kPast,    // those up to its own, which the last key is of the last query
  kSource,  // those before the sequence's Batch::source_lengths (all where that is empty)
};

struct Attention {
  int64_t width = 0;  // d
  int64_t heads = 1;
  Columns queries;  // [batch * query time, ...]
  Columns keys;     // [batch * key time, ...]
  Columns values;   // as the keys
  Sight sight = Sight::kAll;
  // With memory before the segment: how many of its positions, the latest, hold something. [1, 1]
  std::optional<Value> memory_filled = std::nullopt;
  // Relative positions under this path, for distances from 0 (the query's own key) to
  // table_length - 1, which stands for all farther ones too: parameters PATH/relative_keys R
  // [table_length, d], PATH/relative_bias S [table_length, heads] and PATH/key_bias v [d], all from
  // 0. They add q.R + v.k + S to the score q.k.
  std::string relative_path = {};
  int64_t table_length = 0;  // 0: none
};

// softmax(scores / sqrt(d / heads)) values for each head, the heads side by side: [batch * query
// time, d]. A query that sees no key gets zeros.
Value Attend(const Attention& attention);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_COMPONENTS_ATTEND_H_
