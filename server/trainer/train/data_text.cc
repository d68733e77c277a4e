// Pieces of a text file, as bytes or characters.
//
// The end of the text, validation_fraction of its tokens, is held out whether or not it is
// looked at, so that validate_every changes nothing in training.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "server/trainer/model/choices.h"
#include "server/trainer/train/data_tasks.h"

namespace normlab::trainer {
namespace {

// Validation looks at no more than this many batches, spread over the held-out part.
constexpr size_t kMostValidationBatches = 16;

[[noreturn]] void Refuse(const TrainingSettings& settings, const std::string& what) {
  throw std::runtime_error("text_file " + settings.text_file + " " + what);
}

std::string ReadText(const TrainingSettings& settings) {
  if (settings.text_file.empty()) {
    throw std::runtime_error("data text needs text_file: the file to learn");
  }
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(settings.text_file, error);
  if (error) Refuse(settings, "cannot be read: " + error.message());
  if (size == 0) Refuse(settings, "is empty; choose a file with text");
  // Positions are drawn with 31 bits.
  if (size >= uintmax_t{1} << 31) Refuse(settings, "has 2 GiB or more; choose a part of it");
  std::string text(size, '\0');
  std::ifstream file(settings.text_file, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    Refuse(settings, "cannot be read");
  }
  return text;
}

// FNV-1a, 64 bits: tells one text from another.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// The code point that starts at text[*position], which is moved behind it; -1 for what is no UTF-8
// (RFC 3629: shortest form, no surrogates, at most U+10FFFF).
int32_t DecodeUtf8(std::string_view text, size_t* position) {
  const auto lead = static_cast<unsigned char>(text[*position]);
  const int length = lead < 0x80 ? 1 : std::countl_one(lead);
  if (lead >= 0x80 && (length < 2 || length > 4)) return -1;
  if (*position + static_cast<size_t>(length) > text.size()) return -1;
  int32_t point = length == 1 ? lead : lead & (0x7F >> length);
  for (int i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[*position + static_cast<size_t>(i)]);
    if ((byte & 0xC0) != 0x80) return -1;
    point = point << 6 | (byte & 0x3F);
  }
  constexpr int32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < kLeast[length] || point > 0x10FFFF || surrogate) return -1;
  *position += static_cast<size_t>(length);
  return point;
}

std::vector<int32_t> CodePoints(const TrainingSettings& settings, std::string_view text) {
  std::vector<int32_t> points;
  for (size_t position = 0; position < text.size();) {
    points.push_back(DecodeUtf8(text, &position));
    if (points.back() < 0) {
      Refuse(settings, "is not UTF-8 at byte " + std::to_string(position) +
                           "; use text_unit bytes or convert it");
    }
  }
  return points;
}

void CheckVocabulary(const TrainingSettings& settings, int64_t kinds, const char* unit) {
  if (kinds <= settings.vocab_size) return;
  Refuse(settings, "has " + std::to_string(kinds) + " different " + unit + ": set vocab_size to " +
                       std::to_string(kinds) + " or more, not " +
                       std::to_string(settings.vocab_size));
}

// Bytes as they are, or characters numbered in the order of their code points.
std::vector<int32_t> Tokenize(const TrainingSettings& settings, std::string_view text) {
  CheckChoice("text_unit", settings.text_unit, {"bytes", "characters"});
  std::vector<int32_t> tokens;
  if (settings.text_unit == "bytes") {
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    const int32_t highest = *std::ranges::max_element(tokens);
    if (highest >= settings.vocab_size) {
      Refuse(settings, "has byte " + std::to_string(highest) + ": set vocab_size to " +
                           std::to_string(highest + 1) + " or more (256 is always enough), not " +
                           std::to_string(settings.vocab_size));
    }
    return tokens;
  }
  tokens = CodePoints(settings, text);
  std::vector<int32_t> alphabet = tokens;
  std::ranges::sort(alphabet);
  alphabet.erase(std::ranges::unique(alphabet).begin(), alphabet.end());
  CheckVocabulary(settings, static_cast<int64_t>(alphabet.size()), "characters");
  for (int32_t& token : tokens) {
    token = static_cast<int32_t>(std::ranges::lower_bound(alphabet, token) - alphabet.begin());
  }
  return tokens;
}

class TextData final : public RandomData {
 public:
  explicit TextData(const TrainingSettings& settings)
      : RandomData(settings, 5), sequential_(settings.text_order == "sequential") {
    CheckChoice("text_order", settings.text_order, {"sequential", "shuffled"});
    const std::string text = ReadText(settings);
    hash_ = Hash(text);
    tokens_ = Tokenize(settings, text);
    const auto total = static_cast<double>(tokens_.size());
    const auto held_out = static_cast<size_t>(total * settings.validation_fraction);
    CheckLength(settings, tokens_.size() - held_out, "training");
    const std::vector<int32_t> rest(tokens_.end() - static_cast<int64_t>(held_out), tokens_.end());
    tokens_.resize(tokens_.size() - held_out);
    if (settings.validate_every > 0) {
      CheckLength(settings, held_out, "validation");
      MakeValidation(rest);
    }
    for (size_t b = 0; b < batch_; ++b) positions_.push_back(b * tokens_.size() / batch_);
  }

  void Next(Batch& batch) override {
    batch.tokens.resize(batch_ * time_);
    batch.targets.resize(batch_ * time_);
    for (size_t b = 0; b < batch_; ++b) {
      CopyPiece(&tokens_[sequential_ ? Advance(&positions_[b]) : DrawPosition()], b, batch);
    }
  }

  std::vector<uint64_t> State() const override {
    std::vector<uint64_t> state = RandomData::State();
    state.insert(state.end(), positions_.begin(), positions_.end());
    return state;
  }

  void Restore(std::span<const uint64_t> state) override {
    if (state.size() < positions_.size()) throw std::runtime_error("the text state is too short");
    const std::span<const uint64_t> positions = state.last(positions_.size());
    RandomData::Restore(state.first(state.size() - positions_.size()));
    for (const uint64_t position : positions) {
      if (position <= tokens_.size()) continue;
      throw std::runtime_error("a position in the text is beyond its end");
    }
    std::ranges::copy(positions, positions_.begin());
  }

  std::span<const Batch> Validation() const override { return validation_; }
  uint64_t ContentHash() const override { return hash_; }

 private:
  void CheckLength(const TrainingSettings& settings, size_t count, const char* part) const {
    if (count > time_) return;
    Refuse(settings, "is too short: its " + std::string(part) + " part has " +
                         std::to_string(count) + " tokens and needs more than sequence_length, " +
                         std::to_string(time_) +
                         "; choose a longer text, a shorter sequence_length or another "
                         "validation_fraction");
  }

  // Where a sequence stands; afterwards it stands behind the piece. At the end of the text it goes
  // on at the beginning.
  size_t Advance(uint64_t* position) const {
    if (*position + time_ + 1 > tokens_.size()) *position = 0;
    const uint64_t start = *position;
    *position += time_;
    return start;
  }

  size_t DrawPosition() { return random_.Below(static_cast<uint32_t>(tokens_.size() - time_)); }

  // Row b of the batch: time_ tokens and, one later, their targets.
  void CopyPiece(const int32_t* piece, size_t b, Batch& batch) const {
    const auto row = static_cast<int64_t>(b * time_);
    std::copy_n(piece, time_, batch.tokens.begin() + row);
    std::copy_n(piece + 1, time_, batch.targets.begin() + row);
  }

  // The held-out part in pieces, neighbours in the same row of neighbouring batches, so that
  // Transformer-XL may remember. Rows without a piece do not count.
  void MakeValidation(const std::vector<int32_t>& text) {
    const size_t pieces = (text.size() - 1) / time_;
    const size_t per_row = (pieces + batch_ - 1) / batch_;
    for (size_t i = 0; i < std::min(per_row, kMostValidationBatches); ++i) {
      Batch& batch = validation_.emplace_back();
      batch.tokens.assign(batch_ * time_, 0);
      batch.targets.assign(batch_ * time_, kIgnored);
      for (size_t b = 0; b < batch_; ++b) {
        const size_t piece = b * per_row + i;
        if (piece < pieces) CopyPiece(&text[piece * time_], b, batch);
      }
    }
  }

  const bool sequential_;
  uint64_t hash_ = 0;
  std::vector<int32_t> tokens_;      // to train on
  std::vector<uint64_t> positions_;  // of sequential: where each row of the batch goes on
  std::vector<Batch> validation_;
};

}  // namespace

std::unique_ptr<DataSource> MakeTextData(const TrainingSettings& settings) {
  return std::make_unique<TextData>(settings);
}

}  // namespace normlab::trainer
