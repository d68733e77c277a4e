#include "server/app/run_page_token.h"

#include <limits>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace normlab::app {
namespace {

using storage::RunListKey;
using ::testing::HasSubstr;

RunListKey Key() {
  RunListKey key;
  key.id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  key.parts = {{0, 0.1},
               {0, -std::numeric_limits<double>::infinity()},
               {0, int64_t{9007199254740993}},
               {0, std::string("a \"b\" É")},
               {1, {}},
               {2, {}}};
  return key;
}

TEST(RunPageTokenTest, KeepsEveryKindOfValueExactly) {
  const std::string token = MakePageToken("question", Key());
  const auto key = ReadPageToken("question", token);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(*key, Key());
  EXPECT_EQ(token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-_="),
            std::string::npos);
}

TEST(RunPageTokenTest, KeepsTextsThatAreNotUtf8) {
  RunListKey key = Key();
  key.parts = {{0, std::string("a\xC3(\xFF\0b", 6)}};
  const auto read = ReadPageToken("question", MakePageToken("question", key));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, key);
}

TEST(RunPageTokenTest, IsRefusedWithAnyOtherLetterInIt) {
  const std::string token = MakePageToken("question", Key());
  for (size_t i = 0; i < token.size(); ++i) {
    for (const char letter : {'A', '-', '=', ' '}) {
      std::string changed = token;
      changed[i] = letter;
      if (changed == token) continue;
      const absl::Status status = ReadPageToken("question", changed).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << changed;
      EXPECT_THAT(status.message(), HasSubstr("page_token: ")) << changed;
    }
    EXPECT_FALSE(ReadPageToken("question", token.substr(0, i)).ok()) << i;
  }
  EXPECT_FALSE(ReadPageToken("question", token + "A").ok());
  EXPECT_FALSE(ReadPageToken("question", token + "\n").ok());
}

TEST(RunPageTokenTest, OfAnotherQuestionIsRefused) {
  const absl::Status status = ReadPageToken("other", MakePageToken("question", Key())).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("page_token: belongs to another list"));
}

TEST(RunPageTokenTest, WhatIsNoTokenIsRefused) {
  for (const char* json : {"", "{}", "[]", "[1,2]", "[\"a\"]", "[\"a\",\"b\"]", "null", "[",
                           "[\"a\",\"b\",\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",[0]]",
                           "[\"a\",\"b\",\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",[3,1]]",
                           "[\"a\",\"b\",\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",[0,{}]]",
                           "[\"a\",\"b\",\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",1]",
                           "[\"a\",\"b\",\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",[1,2]]"}) {
    const absl::Status status = ReadPageToken("question", absl::WebSafeBase64Escape(json)).status();
    EXPECT_THAT(status.message(), HasSubstr("not one that this server gave")) << json;
  }
  EXPECT_FALSE(ReadPageToken("question", "!!").ok());
  EXPECT_FALSE(ReadPageToken("question", "01ARZ3NDEKTSV4RRFFQ69G5FAV").ok());
  EXPECT_FALSE(ReadPageToken("question", std::string(100'000, 'A')).ok());
}

}  // namespace
}  // namespace normlab::app
