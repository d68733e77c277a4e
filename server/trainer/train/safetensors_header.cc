#include "server/trainer/train/safetensors_header.h"

#include <charconv>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace normlab::trainer {
namespace {

// Just the JSON that a header may hold: objects, strings, and whole numbers from 0.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  SafetensorsHeader Parse() {
    SafetensorsHeader header;
    if (text_.empty() || text_[0] != '{') Fail("expected {");
    Object([&](const std::string& key) {
      if (key == "__metadata__") {
        Object([&](const std::string& name) {
          if (!header.metadata.emplace(name, String()).second) FailTwice(name);
        });
      } else if (!header.tensors.emplace(key, Tensor(key)).second) {
        FailTwice(key);
      }
    });
    SkipSpace();
    if (position_ != text_.size()) Fail("expected the end");
    return header;
  }

 private:
  // {"key": value, ...}, where `member` reads the value.
  template <typename Member>
  void Object(const Member& member) {
    Expect('{');
    if (Accept('}')) return;
    do {
      const std::string key = String();
      Expect(':');
      member(key);
    } while (Accept(','));
    Expect('}');
  }

  SafetensorsFile::Tensor Tensor(const std::string& name) {
    SafetensorsFile::Tensor tensor;
    bool has_dtype = false;
    bool has_shape = false;
    bool has_offsets = false;
    Object([&](const std::string& key) {
      if (key == "dtype" && !std::exchange(has_dtype, true)) {
        tensor.dtype = String();
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        tensor.shape = Numbers();
      } else if (key == "data_offsets" && !std::exchange(has_offsets, true)) {
        const std::vector<int64_t> offsets = Numbers();
        if (offsets.size() != 2) Fail("expected two data_offsets");
        tensor.begin = static_cast<uint64_t>(offsets[0]);
        tensor.end = static_cast<uint64_t>(offsets[1]);
      } else {
        Fail("unexpected \"" + key + "\"");
      }
    });
    if (!has_dtype || !has_shape || !has_offsets) {
      Fail("tensor \"" + name + "\" lacks dtype, shape or data_offsets");
    }
    return tensor;
  }

  std::vector<int64_t> Numbers() {
    std::vector<int64_t> numbers;
    Expect('[');
    if (Accept(']')) return numbers;
    do {
      numbers.push_back(Number());
    } while (Accept(','));
    Expect(']');
    return numbers;
  }

  int64_t Number() {
    SkipSpace();
    const char* begin = text_.data() + position_;
    const char* end = text_.data() + text_.size();
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(begin, end, number);
    const bool leading_zero = stop - begin > 1 && *begin == '0';
    if (error != std::errc() || number < 0 || leading_zero || *begin == '-') {
      Fail("expected a whole number");
    }
    position_ += static_cast<size_t>(stop - begin);
    return number;
  }

  std::string String() {
    Expect('"');
    std::string result;
    for (;;) {
      const char c = Take();
      if (c == '"') return result;
      if (static_cast<unsigned char>(c) < 0x20) Fail("control character in a string");
      if (c == '\\') {
        Escape(&result);
      } else {
        result += c;
      }
    }
  }

  void Escape(std::string* result) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    const char c = Take();
    if (c == 'u') return AppendUtf8(CodePoint(), result);
    const size_t index = kNames.find(c);
    if (index == std::string_view::npos) Fail("unknown escape");
    *result += kValues[index];
  }

  // What follows \u: one unit of UTF-16, or two that belong together.
  uint32_t CodePoint() {
    const uint32_t first = Hex4();
    if (first >= 0xDC00 && first < 0xE000) Fail("half a surrogate pair");
    if (first < 0xD800 || first >= 0xDC00) return first;
    if (Take() != '\\' || Take() != 'u') Fail("half a surrogate pair");
    const uint32_t second = Hex4();
    if (second < 0xDC00 || second >= 0xE000) Fail("half a surrogate pair");
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }

  uint32_t Hex4() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = Take();
      uint32_t digit = 0;
      if (std::from_chars(&c, &c + 1, digit, 16).ec != std::errc())
        Fail("expected four hex digits");
      value = value << 4 | digit;
    }
    return value;
  }

  static void AppendUtf8(uint32_t point, std::string* result) {
    const auto add = [&](uint32_t byte) { *result += static_cast<char>(byte); };
    if (point < 0x80) return add(point);
    if (point < 0x800) {
      add(0xC0 | point >> 6);
    } else if (point < 0x10000) {
      add(0xE0 | point >> 12);
      add(0x80 | (point >> 6 & 0x3F));
    } else {
      add(0xF0 | point >> 18);
      add(0x80 | (point >> 12 & 0x3F));
      add(0x80 | (point >> 6 & 0x3F));
    }
    add(0x80 | (point & 0x3F));
  }

  void SkipSpace() {
    while (position_ < text_.size() &&
           std::string_view(" \t\n\r").find(text_[position_]) != std::string_view::npos) {
      ++position_;
    }
  }

  char Take() {
    if (position_ >= text_.size()) Fail("unexpected end");
    return text_[position_++];
  }

  bool Accept(char c) {
    SkipSpace();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void Expect(char c) {
    if (!Accept(c)) Fail(std::string("expected ") + c);
  }

  [[noreturn]] void FailTwice(const std::string& name) const {
    Fail("\"" + name + "\" comes twice");
  }

  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(position_) + " of the header");
  }

  const std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

SafetensorsHeader ParseSafetensorsHeader(std::string_view json) {
  return HeaderParser(json).Parse();
}

std::string JsonString(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20) {
      result += "\\u00";
      result += kHex[byte >> 4];
      result += kHex[byte & 15];
    } else {
      result += c;
    }
  }
  return result + '"';
}

uint64_t ElementSize(std::string_view dtype) {
  static constexpr std::pair<std::string_view, uint64_t> kSizes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},   {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U16", 2},
      {"I16", 2},  {"F16", 2}, {"BF16", 2}, {"U32", 4},     {"I32", 4},     {"F32", 4},
      {"U64", 8},  {"I64", 8}, {"F64", 8},  {"C64", 8},     {"F8_E8M0", 1},
  };
  for (const auto& [name, size] : kSizes) {
    if (name == dtype) return size;
  }
  return 0;
}

}  // namespace normlab::trainer
