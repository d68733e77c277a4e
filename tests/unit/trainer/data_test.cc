#include "server/trainer/train/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/train/numpy_random.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/trainer/small_settings.h"

namespace normlab::trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TrainingSettings Settings(const std::string& data, const std::string& model = "decoder") {
  TrainingSettings settings = SmallSettings();
  settings.data = data;
  settings.model = model;
  return settings;
}

Batch FirstBatch(const TrainingSettings& settings) {
  Batch batch;
  MakeDataSource(settings)->Next(batch);
  return batch;
}

// Row `row` of a [batch, time] field.
std::vector<int32_t> Row(const std::vector<int32_t>& field, const TrainingSettings& settings,
                         int64_t row) {
  const auto begin = field.begin() + row * settings.sequence_length;
  return {begin, begin + settings.sequence_length};
}

std::string Refusal(const TrainingSettings& settings) {
  try {
    MakeDataSource(settings);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

// Where the target does not count as -1, else the token that is asked for.
constexpr int32_t _ = kIgnored;

// The first draws below 11 from NumPy, default_rng(7 + 116 + (1 << 56)).integers(0, 11, 4,
// dtype=int32).
TEST(CopyData, RepeatsARandomPartOfNumpysStream) {
  const TrainingSettings settings = Settings("copy");
  const Batch batch = FirstBatch(settings);
  EXPECT_THAT(Row(batch.tokens, settings, 0), ElementsAre(6, 5, 5, 4, 11, 6, 5, 5));
  EXPECT_THAT(Row(batch.targets, settings, 0), ElementsAre(_, _, _, _, 6, 5, 5, 4));
}

TEST(CopyData, AsksForThePartAfterTheSeparator) {
  for (const int64_t time : {2, 7, 8}) {
    TrainingSettings settings = Settings("copy");
    settings.sequence_length = time;
    const Batch batch = FirstBatch(settings);
    const int64_t n = time / 2;
    for (int64_t b = 0; b < settings.batch_size; ++b) {
      const std::vector<int32_t> tokens = Row(batch.tokens, settings, b);
      const std::vector<int32_t> targets = Row(batch.targets, settings, b);
      for (int64_t t = 0; t < time; ++t) {
        const auto i = static_cast<size_t>(t);
        const bool asked = t >= n && t < 2 * n;
        EXPECT_EQ(targets[i], asked ? tokens[static_cast<size_t>(t - n)] : kIgnored);
        EXPECT_EQ(tokens[i] == 11, t == n) << "the separator stands at " << n;
        if (t > n) {
          EXPECT_EQ(tokens[i], tokens[static_cast<size_t>(t - n - 1)]);
        }
      }
    }
  }
}

TEST(ReverseData, AsksForThePartBackwards) {
  const TrainingSettings settings = Settings("reverse");
  const Batch batch = FirstBatch(settings);
  for (int64_t b = 0; b < settings.batch_size; ++b) {
    const std::vector<int32_t> s = Row(batch.tokens, settings, b);
    EXPECT_THAT(s, ElementsAre(s[0], s[1], s[2], s[3], 11, s[3], s[2], s[1]));
    EXPECT_THAT(Row(batch.targets, settings, b), ElementsAre(_, _, _, _, s[3], s[2], s[1], s[0]));
  }
}

TEST(ModularAdditionData, AsksForTheSumsOnly) {
  TrainingSettings settings = Settings("modular-addition");
  settings.sequence_length = 11;
  const Batch batch = FirstBatch(settings);
  std::set<int32_t> sums;
  for (int64_t b = 0; b < settings.batch_size; ++b) {
    const std::vector<int32_t> s = Row(batch.tokens, settings, b);
    const int32_t last = (s[8] + s[9]) % 11;  // its target is in sight, its token is not
    EXPECT_THAT(s, ElementsAre(s[0], s[1], 11, (s[0] + s[1]) % 11, s[4], s[5], 11,
                               (s[4] + s[5]) % 11, s[8], s[9], 11));
    EXPECT_THAT(Row(batch.targets, settings, b),
                ElementsAre(_, _, s[3], _, _, _, s[7], _, _, _, last));
    sums.insert({s[3], s[7], last});
  }
  EXPECT_GT(sums.size(), 5u);
}

TEST(EncoderDecoderData, TheDecoderIsAskedForTheSourceAndAnEnd) {
  for (const char* data : {"copy", "reverse"}) {
    TrainingSettings settings = Settings(data, "encdec");
    settings.batch_size = 200;
    const Batch batch = FirstBatch(settings);
    std::set<int32_t> lengths;
    for (int64_t b = 0; b < settings.batch_size; ++b) {
      const int32_t length = batch.source_lengths[static_cast<size_t>(b)];
      lengths.insert(length);
      std::vector<int32_t> source = Row(batch.source, settings, b);
      EXPECT_THAT(std::span(source).subspan(static_cast<size_t>(length)), Each(0));
      source.resize(static_cast<size_t>(length));
      EXPECT_THAT(source, Each(testing::AllOf(testing::Ge(3), testing::Lt(12))));

      if (data == std::string("reverse")) std::ranges::reverse(source);
      std::vector<int32_t> tokens = {1};
      tokens.insert(tokens.end(), source.begin(), source.end());
      tokens.resize(8, 0);
      std::vector<int32_t> targets = source;
      targets.push_back(2);
      targets.resize(8, kIgnored);
      EXPECT_EQ(Row(batch.tokens, settings, b), tokens);
      EXPECT_EQ(Row(batch.targets, settings, b), targets);
    }
    EXPECT_THAT(lengths, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  }
}

TEST(GaussianData, InputsAreStandardNormalAndTargetsUniform) {
  TrainingSettings settings = Settings("gaussian");
  settings.batch_size = 400;
  const Batch batch = FirstBatch(settings);
  ASSERT_EQ(batch.inputs.size(), 400u * 8 * 16);
  EXPECT_TRUE(batch.tokens.empty());
  const auto n = static_cast<double>(batch.inputs.size());  // 51,200
  double moments[5] = {};
  for (const float x : batch.inputs) {
    for (int k = 1; k <= 4; ++k) moments[k] += std::pow(x, k) / n;
  }
  // Four standard errors of each moment of N(0, 1).
  EXPECT_NEAR(moments[1], 0.0, 4 * std::sqrt(1 / n));
  EXPECT_NEAR(moments[2], 1.0, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(moments[3], 0.0, 4 * std::sqrt(15 / n));
  EXPECT_NEAR(moments[4], 3.0, 4 * std::sqrt(96 / n));
  for (int32_t token = 0; token < 12; ++token) {
    EXPECT_NEAR(std::ranges::count(batch.targets, token), 3200 / 12, 70);
  }
}

// --- Texts ---------------------------------------------------------------------------------------

class TextDataTest : public testing::Test {
 protected:
  TextDataTest() {
    settings_.vocab_size = 256;
    settings_.validation_fraction = 0;
    settings_.batch_size = 2;
    settings_.sequence_length = 4;
  }

  void Write(std::string_view text) {
    settings_.text_file = folder_.path() / "text.txt";
    std::ofstream(settings_.text_file, std::ios::binary) << text;
  }

  // A row of tokens as text; the targets must be the text one later.
  std::string RowText(const Batch& batch, int64_t row) const {
    const std::vector<int32_t> tokens = Row(batch.tokens, settings_, row);
    const std::vector<int32_t> targets = Row(batch.targets, settings_, row);
    EXPECT_TRUE(std::equal(tokens.begin() + 1, tokens.end(), targets.begin()));
    return std::string(tokens.begin(), tokens.end()) + static_cast<char>(targets.back());
  }

  fakes::TempDir folder_;
  TrainingSettings settings_ = Settings("text");
};

TEST_F(TextDataTest, SequentialRowsGoOnWhereTheyStoodAndBeginAgain) {
  Write("abcdefghijklmnopqrst");
  settings_.text_order = "sequential";
  const auto data = MakeDataSource(settings_);
  std::vector<std::string> first;
  std::vector<std::string> second;
  for (int i = 0; i < 5; ++i) {
    Batch batch;
    data->Next(batch);
    first.push_back(RowText(batch, 0));
    second.push_back(RowText(batch, 1));
  }
  EXPECT_THAT(first, ElementsAre("abcde", "efghi", "ijklm", "mnopq", "abcde"));
  EXPECT_THAT(second, ElementsAre("klmno", "opqrs", "abcde", "efghi", "ijklm"));
}

TEST_F(TextDataTest, ShuffledPiecesComeFromEverywhere) {
  const std::string text = "abcdefghijklmnopqrst";
  Write(text);
  const auto data = MakeDataSource(settings_);
  std::set<std::string> pieces;
  for (int i = 0; i < 200; ++i) {
    Batch batch;
    data->Next(batch);
    pieces.insert(RowText(batch, 0));
    pieces.insert(RowText(batch, 1));
  }
  EXPECT_EQ(pieces.size(), 16u);  // all that fit
  for (const std::string& piece : pieces) EXPECT_THAT(text, HasSubstr(piece));
  EXPECT_TRUE(pieces.contains("pqrst"));
}

TEST_F(TextDataTest, CharactersAreNumberedByCodePoint) {
  Write("aé€😀aé€😀aé€😀");
  settings_.text_unit = "characters";
  settings_.text_order = "sequential";
  settings_.vocab_size = 4;
  const Batch batch = FirstBatch(settings_);
  EXPECT_THAT(batch.tokens, ElementsAre(0, 1, 2, 3, 2, 3, 0, 1));
  settings_.vocab_size = 3;
  EXPECT_THAT(Refusal(settings_), testing::AllOf(HasSubstr("4 different characters"),
                                                 HasSubstr("set vocab_size to 4 or more")));
}

TEST_F(TextDataTest, WhatIsNoUtf8IsRefusedAsCharactersWithItsPlace) {
  const std::string_view bad[] = {"abc\x80 continuation alone", "abc\xC3( cut off",
                                  "abc\xC0\x80 overlong",       "abc\xE0\x80\x80 overlong",
                                  "abc\xED\xA0\x80 surrogate",  "abc\xF4\x90\x80\x80 too large",
                                  "abc\xF8\x88\x80\x80\x80",    "abcd ends in a \xE2\x82"};
  settings_.text_unit = "characters";
  for (const std::string_view text : bad) {
    Write(text);
    const size_t place = text.starts_with("abcd") ? 15 : 3;
    EXPECT_THAT(Refusal(settings_),
                testing::AllOf(HasSubstr("text_file"), HasSubstr("text_unit"),
                               HasSubstr("not UTF-8 at byte " + std::to_string(place) + ";")))
        << text;
  }
  settings_.text_unit = "bytes";
  EXPECT_EQ(Refusal(settings_), "accepted");
}

TEST_F(TextDataTest, UnusableTextsAreRefusedWithWhatHelps) {
  EXPECT_THAT(Refusal(settings_), HasSubstr("text_file"));
  settings_.text_file = folder_.path() / "missing.txt";
  EXPECT_THAT(Refusal(settings_), HasSubstr("cannot be read"));
  settings_.text_file = folder_.path();
  EXPECT_THAT(Refusal(settings_), HasSubstr("cannot be read"));
  Write("");
  EXPECT_THAT(Refusal(settings_), HasSubstr("is empty"));
  Write("abcd");
  EXPECT_THAT(Refusal(settings_), testing::AllOf(HasSubstr("too short"), HasSubstr("training"),
                                                 HasSubstr("shorter sequence_length")));
  Write("abcde");
  EXPECT_EQ(Refusal(settings_), "accepted");
  settings_.vocab_size = 100;
  EXPECT_THAT(Refusal(settings_), HasSubstr("set vocab_size to 102 or more"));
  settings_.vocab_size = 256;
  settings_.validation_fraction = 0.1;
  settings_.validate_every = 1;
  Write("abcdefghijklmnopqrst");
  EXPECT_THAT(Refusal(settings_), testing::AllOf(HasSubstr("validation part has 2 tokens"),
                                                 HasSubstr("validation_fraction")));
}

TEST_F(TextDataTest, TheHeldOutPartIsTheEndInOrder) {
  Write("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN");  // 40
  settings_.validation_fraction = 0.5;
  settings_.validate_every = 1;
  const auto data = MakeDataSource(settings_);
  const std::span<const Batch> held_out = data->Validation();
  // "uvwx yzAB CDEF GHIJ" and a rest without targets: four pieces, two rows.
  ASSERT_EQ(held_out.size(), 2u);
  EXPECT_EQ(RowText(held_out[0], 0), "uvwxy");
  EXPECT_EQ(RowText(held_out[1], 0), "yzABC");
  EXPECT_EQ(RowText(held_out[0], 1), "CDEFG");
  EXPECT_EQ(RowText(held_out[1], 1), "GHIJK");
  for (int i = 0; i < 100; ++i) {  // and nothing of it is trained on
    Batch batch;
    data->Next(batch);
    EXPECT_THAT(batch.targets, Each(testing::AllOf(testing::Ge('a'), testing::Le('t'))));
  }
}

TEST_F(TextDataTest, ValidationIsBoundedAndRowsWithoutTextDoNotCount) {
  Write(std::string(2000, 'x'));
  settings_.validation_fraction = 0.5;
  settings_.validate_every = 1;
  EXPECT_EQ(MakeDataSource(settings_)->Validation().size(), 16u);
  Write(std::string(26, 'x'));  // 13 held out: 3 pieces
  const auto data = MakeDataSource(settings_);
  ASSERT_EQ(data->Validation().size(), 2u);
  EXPECT_THAT(Row(data->Validation()[1].targets, settings_, 1), Each(kIgnored));
  EXPECT_THAT(Row(data->Validation()[0].targets, settings_, 1), Each('x'));
}

TEST_F(TextDataTest, TheShippedTextIsWhatItsReadmeSays) {
  settings_.text_file = NORMLAB_TEXTS "/alice.txt";
  settings_.vocab_size = 123;  // ASCII up to z
  EXPECT_EQ(Refusal(settings_), "accepted");
  settings_.text_unit = "characters";
  settings_.vocab_size = 70;
  EXPECT_EQ(Refusal(settings_), "accepted");
  settings_.vocab_size = 69;
  EXPECT_THAT(Refusal(settings_), HasSubstr("70 different characters"));
}

// --- All of them ---------------------------------------------------------------------------------

struct Task {
  const char* name;
  const char* data;
  const char* model = "decoder";
  const char* text_order = "shuffled";
};

void PrintTo(const Task& task, std::ostream* out) { *out << task.name; }

class DataSourceTest : public TextDataTest, public testing::WithParamInterface<Task> {
 protected:
  DataSourceTest() {
    std::string text;
    for (int i = 0; i < 500; ++i) text += static_cast<char>('a' + i * i % 23);
    Write(text);
    settings_.data = GetParam().data;
    settings_.model = GetParam().model;
    settings_.text_order = GetParam().text_order;
    settings_.batch_size = 3;
    settings_.sequence_length = 7;
    settings_.d_model = 3;  // with 3 * 7 * 3 numbers a pair of normals is cut
  }
};

INSTANTIATE_TEST_SUITE_P(Tasks, DataSourceTest,
                         testing::Values(Task{"Arithmetic", "arithmetic"}, Task{"Copy", "copy"},
                                         Task{"Reverse", "reverse"},
                                         Task{"EncoderDecoderCopy", "copy", "encdec"},
                                         Task{"EncoderDecoderReverse", "reverse", "encdec"},
                                         Task{"ModularAddition", "modular-addition"},
                                         Task{"Gaussian", "gaussian"}, Task{"TextShuffled", "text"},
                                         Task{"TextSequential", "text", "decoder", "sequential"}),
                         [](const auto& task) { return std::string(task.param.name); });

bool Equal(const Batch& a, const Batch& b) {
  return a.tokens == b.tokens && a.targets == b.targets && a.source == b.source &&
         a.source_lengths == b.source_lengths && a.inputs == b.inputs;
}

TEST_P(DataSourceTest, TheSameSeedGivesTheSameBatchesAndAnotherOneOthers) {
  Batch first = FirstBatch(settings_);
  EXPECT_TRUE(Equal(first, FirstBatch(settings_)));
  settings_.seed = 8;
  const bool positions_only = GetParam().text_order == std::string("sequential");
  EXPECT_EQ(Equal(first, FirstBatch(settings_)), positions_only);
}

TEST_P(DataSourceTest, ARestoredStateGoesOnInTheMiddle) {
  const auto data = MakeDataSource(settings_);
  Batch batch;
  for (int i = 0; i < 3; ++i) data->Next(batch);  // 9 draws: a half-word is pending
  const std::vector<uint64_t> state = data->State();
  const auto other = MakeDataSource(settings_);
  other->Restore(state);
  for (int i = 0; i < 40; ++i) {
    Batch other_batch;
    data->Next(batch);
    other->Next(other_batch);
    ASSERT_TRUE(Equal(batch, other_batch)) << "batch " << i;
  }
  EXPECT_EQ(other->State(), data->State());
}

TEST_P(DataSourceTest, AForeignStateIsRefused) {
  const auto data = MakeDataSource(settings_);
  std::vector<uint64_t> state = data->State();
  state.pop_back();
  EXPECT_THROW(data->Restore(state), std::runtime_error);
}

TEST_P(DataSourceTest, TokensAndTargetsAreInTheVocabulary) {
  settings_.vocab_size = settings_.data == "text" ? 256 : 5;
  const auto data = MakeDataSource(settings_);
  const auto inside = testing::AllOf(testing::Ge(0), testing::Lt(settings_.vocab_size));
  for (int i = 0; i < 20; ++i) {
    Batch batch;
    data->Next(batch);
    EXPECT_THAT(batch.tokens, Each(inside));
    EXPECT_THAT(batch.source, Each(inside));
    EXPECT_THAT(batch.targets, Each(testing::AnyOf(inside, kIgnored)));
    EXPECT_THAT(batch.targets, testing::Contains(inside));
  }
}

TEST(DataSource, WhatDoesNotFitTheTaskIsRefusedByName) {
  TrainingSettings settings = Settings("modular-addition");
  settings.vocab_size = 2;
  EXPECT_THAT(Refusal(settings), HasSubstr("vocab_size of at least 3, not 2"));
  settings = Settings("modular-addition");
  settings.sequence_length = 2;
  EXPECT_THAT(Refusal(settings), HasSubstr("sequence_length of at least 3"));
  settings = Settings("copy");
  settings.sequence_length = 1;
  EXPECT_THAT(Refusal(settings), HasSubstr("sequence_length of at least 2"));
  settings = Settings("copy", "encdec");
  settings.vocab_size = 3;
  EXPECT_THAT(Refusal(settings), HasSubstr("vocab_size of at least 4, not 3"));
  EXPECT_THAT(Refusal(Settings("arithmetic", "encdec")), HasSubstr("data copy or reverse"));
  EXPECT_THAT(Refusal(Settings("tea leaves")), HasSubstr("modular-addition"));
}

}  // namespace
}  // namespace normlab::trainer
