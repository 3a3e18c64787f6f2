// A plan in a sentence, for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "plan/mix.h"
#include "plan/survey.h"

namespace ferry::plan {

// "recompute h.{0-5}.mlp (8 of 8 saves), h.6 (3 of 9 saves); offload 4 storages; keep the rest":
// `names` are the segments', of whose saves the first number is made again. Empty if all is kept.
std::string in_words(const Mix& mix, const std::vector<std::string>& names, const Survey& survey);

// What spans run again in one block of the forward: in the module whose name ends with the first
// number, or without one in the outermost module.
struct BlockWords {
  std::string block;                   // empty: in no module
  std::vector<std::string> operators;  // each once, in order
  std::size_t times = 1;               // that one of them runs again, at most: nested spans
};
std::vector<BlockWords> described(const Program& program, const std::vector<PlanSpan>& spans);

// "recompute the operators native_layer_norm, gelu of h.{0-11}; offload 4 storages; keep the rest";
// where spans nest "of h.{0-11} (up to 3 times)".
std::string in_words(const std::vector<BlockWords>& blocks, const Mix& mix, const Survey& survey);

}  // namespace ferry::plan
