// Refuses a setting whose value is none of the known ones, in the same words everywhere.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_CHOICES_H_
#define NORMLAB_SERVER_TRAINER_MODEL_CHOICES_H_

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace normlab::trainer {

// Throws std::runtime_error that names the setting and lists `choices` if `value` is not among
// them.
inline void CheckChoice(std::string_view name, std::string_view value,
                        std::initializer_list<std::string_view> choices) {
  std::string known;
  for (const std::string_view choice : choices) {
    if (choice == value) return;
    known += (known.empty() ? "" : ", ") + std::string(choice);
  }
  throw std::runtime_error(std::string(name) + " \"" + std::string(value) +
                           "\" is not known; known are " + known);
}

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_CHOICES_H_
