// The JSON header of a safetensors file, without a JSON library: the engine builds with the torch
// wheel and a compiler alone.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_SAFETENSORS_HEADER_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "server/trainer/train/safetensors.h"

namespace normlab::trainer {

struct SafetensorsHeader {
  SafetensorsFile::Metadata metadata;
  std::map<std::string, SafetensorsFile::Tensor, std::less<>> tensors;
};

// Throws std::runtime_error saying what is wrong and at which byte.
SafetensorsHeader ParseSafetensorsHeader(std::string_view json);

// The text as a JSON string with its quotes.
std::string JsonString(std::string_view text);

// Bytes of an element, or 0 if the dtype is not known.
uint64_t ElementSize(std::string_view dtype);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_SAFETENSORS_HEADER_H_
