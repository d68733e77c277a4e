#include "server/rpc/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace normlab::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

worker::v1::RecordBatch Batch(uint64_t first, const std::vector<std::string>& records) {
  worker::v1::RecordBatch batch;
  batch.set_first_sequence(first);
  for (const std::string& record : records) batch.add_records(record);
  return batch;
}

void Add(Pieces& pieces, uint64_t first, const std::vector<std::string>& records) {
  worker::v1::RecordBatch batch = Batch(first, records);
  pieces.Add(batch);
}

constexpr size_t kFull = Pieces::kRowsOfAPiece * Piece::kBytesOfARow;

TEST(PiecesTest, RecordsThatComeOneByOneBecomeOnePieceWhileTheyWait) {
  Pieces pieces;
  Add(pieces, 7, {"a"});
  Add(pieces, 8, {"b", "c"});
  EXPECT_EQ(pieces.bytes(), 3);
  const Piece piece = pieces.Take();
  EXPECT_EQ(piece.first, 7u);
  EXPECT_EQ(piece.last(), 9u);
  EXPECT_THAT(piece.records, ElementsAre("a", "b", "c"));
  EXPECT_TRUE(pieces.empty());
  EXPECT_EQ(pieces.bytes(), 0);
}

TEST(PiecesTest, ABatchOfManyRowsIsCut) {
  Pieces pieces;
  Add(pieces, 1, std::vector<std::string>(5, std::string(kFull / 2, 'x')));
  EXPECT_THAT(pieces.Take().records, SizeIs(2));
  const Piece second = pieces.Take();
  EXPECT_EQ(second.first, 3u);
  EXPECT_EQ(second.rows(), Pieces::kRowsOfAPiece);
  EXPECT_THAT(pieces.Take().records, SizeIs(1));
  EXPECT_TRUE(pieces.empty());
}

TEST(PiecesTest, ARecordLargerThanAPieceIsOneOfItsOwn) {
  Pieces pieces;
  Add(pieces, 1, {"a", std::string(3 * kFull, 'x'), "b"});
  EXPECT_THAT(pieces.Take().records, ElementsAre("a"));
  EXPECT_THAT(pieces.Take().records, ElementsAre(SizeIs(3 * kFull)));
  EXPECT_THAT(pieces.Take().records, ElementsAre("b"));
}

TEST(PiecesTest, RecordsThatDoNotFollowAreAPieceOfTheirOwn) {
  Pieces pieces;
  Add(pieces, 1, {"a"});
  Add(pieces, 3, {"c"});
  EXPECT_EQ(pieces.Take().last(), 1u);
  EXPECT_EQ(pieces.Take().first, 3u);
}

}  // namespace
}  // namespace normlab::rpc
