#include "server/trainer/model/sha1.h"

#include <bit>
#include <cstddef>
#include <string>

namespace normlab::trainer {
namespace {

using State = std::array<uint32_t, 5>;

// The message, a one bit, zeros, and the length in bits, filling whole blocks of 64 bytes.
std::string Pad(std::string_view message) {
  std::string padded(message);
  padded.push_back('\x80');
  while (padded.size() % 64 != 56) padded.push_back('\0');
  const uint64_t bits = uint64_t{message.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) padded.push_back(static_cast<char>(bits >> shift));
  return padded;
}

std::array<uint32_t, 80> ExpandBlock(std::string_view block) {
  std::array<uint32_t, 80> words{};
  for (size_t i = 0; i < 64; ++i) {
    words[i / 4] = words[i / 4] << 8 | static_cast<uint8_t>(block[i]);
  }
  for (size_t t = 16; t < 80; ++t) {
    words[t] = std::rotl(words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16], 1);
  }
  return words;
}

void Compress(std::string_view block, State& state) {
  const std::array<uint32_t, 80> words = ExpandBlock(block);
  auto [a, b, c, d, e] = state;
  for (size_t t = 0; t < 80; ++t) {
    uint32_t mixed;
    if (t < 20) {
      mixed = ((b & c) | (~b & d)) + 0x5A827999u;
    } else if (t < 40) {
      mixed = (b ^ c ^ d) + 0x6ED9EBA1u;
    } else if (t < 60) {
      mixed = ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDCu;
    } else {
      mixed = (b ^ c ^ d) + 0xCA62C1D6u;
    }
    const uint32_t next = std::rotl(a, 5) + mixed + e + words[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

}  // namespace

std::array<uint32_t, 5> Sha1(std::string_view message) {
  State state = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u, 0xC3D2E1F0u};
  const std::string padded = Pad(message);
  for (size_t start = 0; start < padded.size(); start += 64) {
    Compress(std::string_view(padded).substr(start, 64), state);
  }
  return state;
}

}  // namespace normlab::trainer
