#include "server/storage/page_copy.h"

#include <sys/stat.h>

#include "gtest/gtest.h"
#include "server/base/strings.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::storage {
namespace {

int64_t Count(Database& database, std::string_view sql) {
  Statement select = database.Prepared(sql);
  return select.Step() ? select.Integer(0) : -1;
}

// A database that one connection writes, and a copy of it that is under way.
class PageCopyTest : public ::testing::Test {
 protected:
  PageCopyTest() {
    source_ = Database::Open(dir_.path() / "source.db", Database::Access::kReadWrite).value();
    EXPECT_TRUE(source_->Execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY, text TEXT)").ok());
    Write(1, 5000);
  }
  void Write(int first, int last) {
    EXPECT_TRUE(source_
                    ->Execute(StrCat("WITH RECURSIVE c(n) AS (SELECT ", first,
                                     " UNION ALL SELECT n + 1 FROM c WHERE n < ", last,
                                     ") INSERT OR REPLACE INTO numbers SELECT n, "
                                     "printf('%0100d', random()) FROM c"))
                    .ok());
  }

  fakes::TempDir dir_;
  std::unique_ptr<Database> source_;
  const std::filesystem::path path_ = dir_.path() / "copy.db";
};

TEST_F(PageCopyTest, WhatIsWrittenMeanwhileIsInTheCopyAndItNeverStartsOver) {
  auto copy = PageCopy::Start(*source_, path_).value();
  int64_t copied = 0;
  int last = 5000, steps = 0;
  while (true) {
    const absl::StatusOr<bool> ended = copy->Step(8);
    ASSERT_TRUE(ended.ok()) << ended.status();
    ASSERT_GT(copy->copied_pages(), copied) << "it started over";
    copied = copy->copied_pages();
    if (*ended) break;
    ++steps;
    Write(steps, steps);        // in pages that were copied
    Write(last - steps, last);  // in some that were not
    if (steps % 4 == 0) {       // and new ones, while the log comes and goes
      Write(last + 1, last + 100);
      last += 100;
      ASSERT_TRUE(source_->Checkpoint(Database::CheckpointMode::kTruncate).ok());
    }
  }
  EXPECT_GT(steps, 10);
  copy.reset();
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto made = Database::Open(path_, Database::Access::kReadWrite).value();
  ASSERT_TRUE(
      made->Execute(StrCat("ATTACH '", (dir_.path() / "source.db").string(), "' AS source")).ok());
  EXPECT_EQ(Count(*made, "SELECT count(*) FROM numbers"), last);
  EXPECT_EQ(Count(*made,
                  "SELECT count(*) FROM (SELECT * FROM numbers EXCEPT "
                  "SELECT * FROM source.numbers)"),
            0);
}

TEST_F(PageCopyTest, WhatIsThereIsNotWrittenOver) {
  ASSERT_TRUE(PageCopy::Start(*source_, path_).ok());
  EXPECT_FALSE(PageCopy::Start(*source_, path_).ok());
}

}  // namespace
}  // namespace normlab::storage
