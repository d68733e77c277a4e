// What people may say about runs. Everything that is taken is kept exactly.
#ifndef NORMLAB_SERVER_DOMAIN_RUN_WORDS_H_
#define NORMLAB_SERVER_DOMAIN_RUN_WORDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "server/domain/violations.h"

namespace normlab::domain {

// At most 50 labels, each of 1 to 100 bytes of UTF-8 without control characters, none twice.
std::vector<FieldViolation> CheckLabels(std::string_view field,
                                        const std::vector<std::string>& labels);

// At most 10,000 bytes of UTF-8; of the control characters only line breaks and tabs.
std::vector<FieldViolation> CheckNotes(std::string_view field, std::string_view notes);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_RUN_WORDS_H_
