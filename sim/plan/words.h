// A plan in a sentence, for people.
#pragma once

#include <string>
#include <vector>

#include "sim/plan/mix.h"
#include "sim/plan/survey.h"

namespace ferry::plan {

// "recompute h.{0-5}.mlp (8 of 8 saves), h.6 (3 of 9 saves); offload 4 storages; keep the rest":
// `names` are the segments', of whose saves the first number is made again. Empty if all is kept.
std::string in_words(const Mix& mix, const std::vector<std::string>& names, const Survey& survey);

}  // namespace ferry::plan
