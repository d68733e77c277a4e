#include "server/http/text.h"

#include "gtest/gtest.h"

namespace normlab::http {
namespace {

TEST(Text, Utf8) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain, é, 漢, 😀"));
  EXPECT_TRUE(IsUtf8("\xf4\x8f\xbf\xbf"));  // U+10FFFF
  for (const char* bad : {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xff",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xe6\xbc", "a\xc3(b"}) {
    EXPECT_FALSE(IsUtf8(bad)) << ::testing::PrintToString(std::string(bad));
  }
}

TEST(Text, NearestNameIsNamedOnlyWhenNear) {
  const std::vector<std::string> names = {"layers", "batch_size", "seed"};
  EXPECT_EQ(DidYouMean("layer", names), ", did you mean layers?");
  EXPECT_EQ(DidYouMean("batchSise", names), ", did you mean batch_size?");
  EXPECT_EQ(DidYouMean("momentum", names), "");
  EXPECT_EQ(DidYouMean("see", names), ", did you mean seed?");
  EXPECT_EQ(DidYouMean("s", names), "");
  EXPECT_EQ(DidYouMean(std::string(1000000, 'a'), names), "");
}

TEST(Text, ShorteningCutsNoCharacterInTwo) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcd", 3), "abc...");
  EXPECT_EQ(Shortened("ab漢", 4), "ab...");
  EXPECT_EQ(Shortened("漢漢", 3), "漢...");
}

TEST(Text, SplitKeepsEmptyPieces) {
  EXPECT_EQ(Split("", ','), (std::vector<std::string_view>{""}));
  EXPECT_EQ(Split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
}

TEST(Text, ToDoubleTakesTheWholeTextOrNothing) {
  EXPECT_EQ(ToDouble("2e-3"), 2e-3);
  EXPECT_TRUE(ToDouble("-Infinity").has_value());
  EXPECT_TRUE(ToDouble("NaN").has_value());
  for (const char* bad : {"", "1x", " 1", "0x10", "1e999"}) EXPECT_FALSE(ToDouble(bad)) << bad;
}

}  // namespace
}  // namespace normlab::http
