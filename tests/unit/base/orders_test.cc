#include "server/base/orders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

class OrdersTest : public testing::Test {
 protected:
  int Parse(const std::string& text) {
    orders_->length = text.size();
    std::memcpy(orders_->text, text.data(), std::min(text.size(), sizeof(orders_->text)));
    return ParseOrders(orders_.get());
  }
  static std::vector<std::string> Words(char** words) {
    std::vector<std::string> found;
    for (; *words != nullptr; ++words) found.emplace_back(*words);
    return found;
  }
  // What the kernel shows of this process.
  static std::string Shown() {
    std::ifstream file("/proc/self/environ", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::unique_ptr<Orders> orders_ = std::make_unique<Orders>();
};

std::string Text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(word).push_back('\0');
  return text;
}

TEST_F(OrdersTest, ArgumentsAndEnvironmentAreFound) {
  ASSERT_EQ(Parse(Text({"trainer", "--run", "01RUN", "", "A=1", "B=", "C=x=y"})), 0);
  EXPECT_EQ(orders_->argc, 3);
  EXPECT_EQ(Words(orders_->argv), (std::vector<std::string>{"trainer", "--run", "01RUN"}));
  EXPECT_EQ(Words(orders_->environment), (std::vector<std::string>{"A=1", "B=", "C=x=y"}));
  ASSERT_EQ(Parse(Text({"trainer", ""})), 0);
  EXPECT_TRUE(Words(orders_->environment).empty());
}

TEST_F(OrdersTest, WhatIsNoSuchTextIsRefused) {
  EXPECT_EQ(Parse(""), -1);
  EXPECT_EQ(Parse("trainer"), -1) << "no end";
  EXPECT_EQ(Parse(Text({"trainer"})), -1) << "no environment";
  EXPECT_EQ(Parse(Text({"", "A=1"})), -1) << "no arguments";
  EXPECT_EQ(Parse(Text({"trainer", "", "A=1", ""})), -1) << "an empty entry";
  EXPECT_EQ(Parse(Text({"trainer", "", "A"})), -1) << "no entry";
  EXPECT_EQ(Parse(Text({"trainer", "", "=1"})), -1) << "no name";
  EXPECT_EQ(Parse(std::string(kOrdersBytes + 1, '\0')), -1) << "cut";
  EXPECT_EQ(Parse(Text(std::vector<std::string>(kOrdersWords + 1, "word"))), -1) << "too many";
}

TEST_F(OrdersTest, TheEnvironmentIsTakenAndTheKernelShowsTheEntryThatIsToBeShown) {
  ASSERT_NE(std::getenv("PATH"), nullptr);  // of a test's first environment
  const std::string old = std::getenv("PATH");
  ASSERT_EQ(Parse(Text({"trainer", "", "PATH=/of/orders", "ORDERS_TEST=yes"})), 0);
  ASSERT_GE(old.size(), std::strlen("/of/orders"));
  ASSERT_EQ(TakeEnvironment(orders_.get(), "PATH"), 0);
  EXPECT_STREQ(std::getenv("PATH"), "/of/orders");
  EXPECT_STREQ(std::getenv("ORDERS_TEST"), "yes");
  const std::string shown = '\0' + Shown();
  EXPECT_NE(shown.find(std::string("\0PATH=/of/orders\0", 17)), std::string::npos);
  EXPECT_EQ(shown.find(old), std::string::npos);
}

TEST_F(OrdersTest, AnEntryWithoutRoomOrOfNoSuchNameIsRefused) {
  ASSERT_EQ(Parse(Text({"trainer", "", "PATH=" + std::string(20000, 'x')})), 0);
  const std::string old = std::getenv("PATH");
  EXPECT_EQ(TakeEnvironment(orders_.get(), "PATH"), -1);
  EXPECT_EQ(std::getenv("PATH"), old);
  EXPECT_EQ(TakeEnvironment(orders_.get(), "ORDERS_TEST_OTHER"), -1);
}

TEST_F(OrdersTest, ArgumentsAreShownWhereThereIsRoom) {
  std::vector<char> memory(32, 'x');
  std::memcpy(memory.data(), "trainer\0--warm\0          ", 26);
  char* argv[] = {memory.data(), memory.data() + 8, memory.data() + 15};
  ASSERT_EQ(Parse(Text({"trainer", "--run", "01RUN", ""})), 0);
  ShowArguments(orders_.get(), 3, argv);
  EXPECT_EQ(std::string(memory.data(), 20), std::string("trainer\0--run\0"
                                                        "01RUN\0",
                                                        20));
  EXPECT_EQ(memory[24], '\0');
  EXPECT_EQ(memory[26], 'x') << "behind it";
  ASSERT_EQ(Parse(Text({"trainer", "--run", std::string(40, 'r'), ""})), 0);
  ShowArguments(orders_.get(), 3, argv);
  EXPECT_STREQ(memory.data(), "trainer");
}

}  // namespace
