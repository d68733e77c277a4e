#include "server/trainer/train/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/trainer/model/initialization.h"
#include "server/trainer/model/parameters.h"
#include "server/trainer/train/weights.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::trainer {
namespace {

using testing::_;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class SafetensorsTest : public testing::Test {
 protected:
  // A file made by hand: the header's length, the header, and `size` bytes of data.
  void WriteRaw(const std::string& header, size_t size) {
    const uint64_t length = header.size();
    std::string bytes(reinterpret_cast<const char*>(&length), 8);
    WriteBytes(bytes + header + std::string(size, '\0'));
  }

  void WriteBytes(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string ReadBytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Why the file is not read.
  std::string Refusal() const {
    try {
      SafetensorsFile(path_).VerifyChecksum();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "accepted";
  }

  fakes::TempDir folder_;
  const std::string path_ = folder_.path() / "weights.safetensors";
};

TEST_F(SafetensorsTest, WhatIsWrittenIsRead) {
  const std::vector<float> floats = {1, -0.0f, std::numeric_limits<float>::denorm_min(), 4, 5, 6};
  const std::vector<double> doubles = {0.1};
  const std::vector<uint64_t> words = {0, ~uint64_t{0}, 7};
  const std::string odd = "a \"quoted\\ name\"\n\x01 ü";
  const int64_t bytes = WriteSafetensors(path_, {{"step", "12"}, {odd, odd}},
                                         {{"f", {2, 3}, floats},
                                          {"empty", {0, 4}, std::span<const float>()},
                                          {odd, {1}, doubles},
                                          {"scalar", {}, std::span(floats).first(1)},
                                          {"w", {3}, words}});
  EXPECT_EQ(bytes, static_cast<int64_t>(std::filesystem::file_size(path_)));
  const SafetensorsFile file(path_);
  EXPECT_THAT(file.metadata(),
              ElementsAre(Pair(odd, odd), Pair("normlab_crc32c", _), Pair("step", "12")));
  EXPECT_EQ(file.tensors().size(), 5u);
  EXPECT_THAT(file.Find("f")->shape, ElementsAre(2, 3));
  EXPECT_THAT(file.Find("scalar")->shape, ElementsAre());
  EXPECT_EQ(file.Find("g"), nullptr);
  std::vector<float> got(6);
  file.Read("f", got);
  EXPECT_EQ(std::memcmp(got.data(), floats.data(), 24), 0);
  std::vector<double> got_doubles(1);
  file.Read(odd, got_doubles);
  EXPECT_EQ(got_doubles, doubles);
  std::vector<uint64_t> got_words(3);
  file.Read("w", got_words);
  EXPECT_EQ(got_words, words);
}

TEST_F(SafetensorsTest, TheFileIsPrivateAndNothingElseIsLeft) {
  const std::vector<float> values = {1};
  WriteSafetensors(path_, {}, {{"x", {1}, values}});
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(SafetensorsTest, AFileOfAnotherProgramIsRead) {
  WriteRaw(R"( {"b":{"shape":[1],"data_offsets":[4,8],"dtype":"F32"} ,
               "\u0061\ud83d\ude00":{"dtype":"I32","shape":[],"data_offsets":[0,4]}})",
           8);
  EXPECT_THAT(Refusal(), HasSubstr("expected {"));  // the format wants it first
  WriteRaw(R"({"b":{"shape":[1],"data_offsets":[4,8],"dtype":"F32"} ,
              "\u0061\ud83d\ude00":{"dtype":"I32","shape":[],"data_offsets":[0,4]}}  )",
           8);
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.Find("a😀")->dtype, "I32");
  EXPECT_TRUE(file.metadata().empty());
}

TEST_F(SafetensorsTest, NarrowNumbersAreConverted) {
  const std::string header = R"({"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                             R"("h":{"dtype":"F16","shape":[6],"data_offsets":[8,20]},)"
                             R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[20,24]}})";
  WriteRaw(header, 0);
  std::string bytes = ReadBytes();
  const double d = 0.1;
  // 1.5, the largest, the smallest normal, the smallest, -infinity, NaN
  const uint16_t h[] = {0x3E00, 0x7BFF, 0x0400, 0x0001, 0xFC00, 0x7E00};
  const uint16_t b[] = {0x3FC0, 0xC000};
  bytes.append(reinterpret_cast<const char*>(&d), 8);
  bytes.append(reinterpret_cast<const char*>(h), 12);
  bytes.append(reinterpret_cast<const char*>(b), 4);
  WriteBytes(bytes);
  const SafetensorsFile file(path_);
  std::vector<float> values(1);
  file.ReadConverted("d", values);
  EXPECT_EQ(values[0], 0.1f);
  values.resize(6);
  file.ReadConverted("h", values);
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[1], 65504.0f);
  EXPECT_EQ(values[2], 0x1p-14f);
  EXPECT_EQ(values[3], 0x1p-24f);
  EXPECT_EQ(values[4], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(values[5]));
  values.resize(2);
  file.ReadConverted("b", values);
  EXPECT_THAT(values, ElementsAre(1.5f, -2.0f));
}

TEST_F(SafetensorsTest, ReadingChecksDtypeAndSize) {
  WriteRaw(R"({"x":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})", 8);
  const SafetensorsFile file(path_);
  std::vector<float> two(2);
  EXPECT_THROW(file.Read("x", two), std::runtime_error);
  EXPECT_THROW(file.ReadConverted("x", two), std::runtime_error);
  EXPECT_THROW(file.Read("y", two), std::runtime_error);
  const std::vector<float> three(3);
  WriteSafetensors(path_, {}, {{"x", {3}, three}});
  EXPECT_THROW(SafetensorsFile(path_).Read("x", two), std::runtime_error);
}

TEST_F(SafetensorsTest, DamagedFilesAreRefused) {
  EXPECT_THAT(Refusal(), HasSubstr("cannot be read"));
  WriteBytes("short");
  EXPECT_THAT(Refusal(), HasSubstr("too short"));
  WriteBytes(std::string(8, '\xFF') + "{}");
  EXPECT_THAT(Refusal(), HasSubstr("would have 18446744073709551615 bytes"));
  WriteBytes(std::string("\x10\0\0\0\0\0\0\0{}", 10));
  EXPECT_THAT(Refusal(), HasSubstr("cut off in its header"));
  const std::string one = R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  WriteRaw(one, 7);
  EXPECT_THAT(Refusal(), HasSubstr("1 bytes of its tensors are missing"));
  WriteRaw(one, 9);
  EXPECT_THAT(Refusal(), HasSubstr("1 bytes after its tensors"));
  WriteRaw(one, 8);
  EXPECT_EQ(Refusal(), "accepted");
}

TEST_F(SafetensorsTest, ImpossibleLayoutsAreRefused) {
  const auto x = [](const std::string& dtype, const std::string& shape, const std::string& at) {
    return R"("x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + at + "}";
  };
  const std::string first = R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)";
  const std::pair<std::string, const char*> cases[] = {
      {"{" + x("F32", "[2]", "[0,4]") + "}", "offsets do not fit"},
      {"{" + x("F32", "[2]", "[8,0]") + "}", "offsets do not fit"},
      {"{" + x("F32", "[4294967296,4294967296]", "[0,0]") + "}", "offsets do not fit"},
      {"{" + x("F33", "[1]", "[0,4]") + "}", "unknown dtype F33"},
      {first + x("F32", "[1]", "[6,10]") + "}", "misaligned"},
      {first + x("F32", "[1]", "[4,8]") + "}", "over another"},
      {first + x("F32", "[1]", "[8,12]") + "}", "gap before tensor x"},
      {first + x("F32", "[1]", "[4,8]") + "," + x("F32", "[1]", "[4,8]") + "}", "x\" comes twice"},
  };
  for (const auto& [header, reason] : cases) {
    WriteRaw(header, 12);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr(path_), HasSubstr(reason))) << header;
  }
}

TEST_F(SafetensorsTest, WhatIsNotTheJsonOfAHeaderIsRefused) {
  const char* const headers[] = {
      "",
      "[]",
      "{",
      "{}x",
      "{\"x\"}",
      "{\"x\":1}",
      "{\"x\":{}}",
      R"({"x":{"dtype":"F32","shape":[0]}})",
      R"({"x":{"dtype":"F32","shape":[0],"data_offsets":[0]}})",
      R"({"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0,0]}})",
      R"({"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0],}})",
      R"({"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"more":1}})",
      R"({"x":{"dtype":"F32","dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
      R"({"x":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}})",
      R"({"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})",
      R"({"x":{"dtype":"F32","shape":[00],"data_offsets":[0,0]}})",
      R"({"x":{"dtype":"F32","shape":[0.5],"data_offsets":[0,0]}})",
      R"({"x":{"dtype":"F32","shape":[9999999999999999999],"data_offsets":[0,0]}})",
      R"({"x":{"dtype":F32,"shape":[0],"data_offsets":[0,0]}})",
      R"({"__metadata__":{"a":1}})",
      R"({"__metadata__":{"a":"b","a":"b"}})",
      R"({"__metadata__":{},"__metadata__":"x"})",
      R"({"\q":{}})",
      R"({"\ud83dx":{}})",
      R"({"\ude00":{}})",
      R"({"\u00g0":{}})",
      "{\"\n\":{}}",
      "{\"x",
      "{\"x\\",
  };
  for (const char* header : headers) {
    WriteRaw(header, 0);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("is no safetensors file"), HasSubstr("of the header")))
        << header;
  }
  WriteRaw("{}", 0);
  EXPECT_EQ(Refusal(), "accepted");
}

// The sum was computed by another program, bit by bit, from what safetensors.h says.
TEST_F(SafetensorsTest, TheChecksumIsOfEverythingTheFileSays) {
  const std::vector<float> floats = {1, 2};
  const std::vector<uint64_t> words = {7};
  WriteSafetensors(path_, {{"k", "v"}}, {{"x", {2, 1}, floats}, {"w", {}, words}});
  EXPECT_THAT(SafetensorsFile(path_).metadata(),
              ElementsAre(Pair("k", "v"), Pair("normlab_crc32c", "ead07d8f")));
  EXPECT_EQ(Refusal(), "accepted");
}

// Every prefix of a good file is refused, and every changed bit; but for one in the checksum's own
// name, which makes a file without a checksum of it, whose other contents are whole.
TEST_F(SafetensorsTest, NoDamageGoesUnnoticedOrCrashes) {
  const std::vector<float> values = {1, 2, 3, 4}, more = {5, 6, 7, 8};
  WriteSafetensors(path_, {{"k", "v"}}, {{"x", {2, 2}, values}, {"y", {4}, more}});
  const std::string good = ReadBytes();
  const size_t name = good.find("normlab_crc32c");
  for (size_t size = 0; size < good.size(); ++size) {
    WriteBytes(good.substr(0, size));
    EXPECT_NE(Refusal(), "accepted") << size;
  }
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    if (bit / 8 >= name && bit / 8 < name + 14) continue;
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    WriteBytes(bad);
    EXPECT_NE(Refusal(), "accepted") << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST_F(SafetensorsTest, TensorsThatChangedPlacesAreNoticed) {
  const std::vector<float> x = {1}, y = {2};
  WriteSafetensors(path_, {}, {{"x", {1}, x}, {"y", {1}, y}});
  std::string bytes = ReadBytes();
  bytes[bytes.find("\"x\"") + 1] = 'z';
  bytes[bytes.find("\"y\"") + 1] = 'x';
  bytes[bytes.find("\"z\"") + 1] = 'y';
  WriteBytes(bytes);
  EXPECT_THAT(Refusal(), HasSubstr("is damaged: its checksum is"));
}

// --- Weights by name -----------------------------------------------------------------------------

class LoadWeightsTest : public SafetensorsTest {
 protected:
  LoadWeightsTest() {
    parameters_.Declare("a/kernel", {2, 3}, Initializer::Constant(7));
    parameters_.Declare("a/bias", {3}, Initializer::Constant(8));
    weights_.resize(static_cast<size_t>(parameters_.buffer_size()));
    InitializeParameters(TrainingSettings(), parameters_, weights_);
  }

  std::string Load(bool allow_missing) {
    try {
      LoadWeights(path_, allow_missing, parameters_, weights_);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "loaded";
  }

  ParameterTable parameters_;
  std::vector<float> weights_;
  const std::vector<float> values_ = {1, 2, 3, 4, 5, 6};
};

TEST_F(LoadWeightsTest, TakesWhatItKnowsByName) {
  WriteSafetensors(path_, {},
                   {{"other", {6}, values_},
                    {"a/bias", {3}, std::span(values_).first(3)},
                    {"normlab/optimizer/first_moment/a/bias", {3}, std::span(values_).first(3)},
                    {"a/kernel", {2, 3}, values_}});
  EXPECT_EQ(Load(false), "loaded");
  EXPECT_EQ(weights_[5], 6.0f);
  EXPECT_EQ(weights_[6], 0.0f);  // the gap between tensors
  EXPECT_EQ(weights_[16], 1.0f);
}

TEST_F(LoadWeightsTest, ListsWhatIsMissingUnlessThatIsAllowed) {
  WriteSafetensors(path_, {}, {{"a/kernel", {2, 3}, values_}});
  EXPECT_THAT(Load(false), AllOf(HasSubstr("lacks 1 of the 2 weights"), HasSubstr(": a/bias")));
  EXPECT_EQ(weights_[0], 7.0f) << "nothing is loaded then";
  EXPECT_EQ(Load(true), "loaded");
  EXPECT_EQ(weights_[0], 1.0f);
  EXPECT_EQ(weights_[16], 8.0f);
}

TEST_F(LoadWeightsTest, NeverTakesAnotherShape) {
  WriteSafetensors(path_, {}, {{"a/kernel", {3, 2}, values_}});
  EXPECT_THAT(Load(true), HasSubstr("a/kernel of shape [3, 2] where the model has [2, 3]"));
  EXPECT_EQ(weights_[0], 7.0f);
}

}  // namespace
}  // namespace normlab::trainer
