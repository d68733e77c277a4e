// Safetensors files of strangers: refused in words, or with tensors that lie within the file.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/trainer/train/safetensors.h"
#include "server/trainer/train/safetensors_header.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::trainer::SafetensorsFile;
using normlab::trainer::SafetensorsHeader;

std::string NumbersText(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return "[" + text + "]";
}

std::string Printed(const SafetensorsHeader& header) {
  using normlab::trainer::JsonString;
  std::string json = "{\"__metadata__\":{";
  for (const auto& [key, value] : header.metadata) {
    if (json.back() != '{') json += ',';
    json += JsonString(key) + ":" + JsonString(value);
  }
  json += '}';
  for (const auto& [name, tensor] : header.tensors) {
    json += "," + JsonString(name) + ":{\"dtype\":" + JsonString(tensor.dtype) +
            ",\"shape\":" + NumbersText(tensor.shape) + ",\"data_offsets\":[" +
            std::to_string(tensor.begin) + "," + std::to_string(tensor.end) + "]}";
  }
  return json + "}";
}

// The header alone: what was read prints as a header that is read as the same.
void CheckHeader(std::string_view json) {
  SafetensorsHeader header;
  try {
    header = normlab::trainer::ParseSafetensorsHeader(json);
  } catch (const std::runtime_error& refusal) {
    REQUIRE(*refusal.what() != '\0');
    return;
  }
  const SafetensorsHeader again = normlab::trainer::ParseSafetensorsHeader(Printed(header));
  REQUIRE(again.metadata == header.metadata);
  REQUIRE(again.tensors.size() == header.tensors.size());
  for (const auto& [name, tensor] : header.tensors) {
    const auto found = again.tensors.find(name);
    REQUIRE(found != again.tensors.end());
    REQUIRE(found->second.dtype == tensor.dtype && found->second.shape == tensor.shape);
    REQUIRE(found->second.begin == tensor.begin && found->second.end == tensor.end);
  }
}

void ReadTensors(const SafetensorsFile& file, uint64_t file_bytes) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    REQUIRE(tensor.begin <= tensor.end && tensor.end <= file_bytes);
    uint64_t elements = 1;
    for (const int64_t extent : tensor.shape) elements *= static_cast<uint64_t>(extent);
    REQUIRE(elements * normlab::trainer::ElementSize(tensor.dtype) == tensor.end - tensor.begin);
    bytes += tensor.end - tensor.begin;
    std::vector<float> values(elements);
    try {
      file.ReadConverted(name, values);
    } catch (const std::runtime_error& refusal) {
      REQUIRE(tensor.dtype[0] != 'F' || tensor.dtype.starts_with("F8"));  // no floating point
    }
  }
  REQUIRE(bytes <= file_bytes);
}

// The whole file, as weights come in.
void CheckFile(std::string_view content) {
  static const int file = memfd_create("safetensors_fuzz", MFD_CLOEXEC);
  REQUIRE(ftruncate(file, 0) == 0);
  REQUIRE(pwrite(file, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()));
  try {
    const SafetensorsFile opened("/proc/self/fd/" + std::to_string(file));
    ReadTensors(opened, content.size());
    opened.VerifyChecksum();
  } catch (const std::runtime_error& refusal) {
    REQUIRE(std::string_view(refusal.what()).starts_with("/proc/self/fd/"));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  CheckFile(content);
  CheckHeader(content);
  // A mutated header seldom keeps its own length: say it for it.
  const size_t end = content.rfind('}');
  if (end == std::string_view::npos) return 0;
  const uint64_t length = end + 1;
  CheckFile(std::string(std::bit_cast<std::array<char, 8>>(length).data(), 8) +
            std::string(content));
  CheckHeader(content.substr(0, end + 1));
  return 0;
}
