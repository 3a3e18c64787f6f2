// Describes in one sentence what a plan recomputes and offloads, for the text of `ferry plan` and
// `ferry simulate` (cli/rows.cpp). Names with consecutive numbers are joined, and offloaded
// storages are only counted: the plan file says which ones move.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "plan/mix.h"
#include "plan/survey.h"

namespace ferry::plan {

// Describes a mix of segments: "recompute h.{0-5}.mlp (8 of 8 saves), h.6 (3 of 9 saves); offload 4
// storages; keep the rest". The first number is the saves that are recomputed. `names` are the
// names of the segments. The text is empty if everything is kept.
std::string in_words(const Mix& mix, const std::vector<std::string>& names, const Survey& survey);

// The operators that spans recompute in one block of the forward. A block is a module: its name is
// the operator's module name up to the first number, or the outermost module if there is none.
struct BlockWords {
  std::string block;                   // empty: the operators are in no module
  std::vector<std::string> operators;  // each name once, in order
  std::size_t times = 1;               // the most recomputes of one operator; nested spans: over 1
};
std::vector<BlockWords> described(const Program& program, const std::vector<PlanSpan>& spans);

// Describes a mix of spans: "recompute the operators native_layer_norm, gelu of h.{0-11}; offload 4
// storages; keep the rest". With nested spans it says "of h.{0-11} (up to 3 times)".
std::string in_words(const std::vector<BlockWords>& blocks, const Mix& mix, const Survey& survey);

}  // namespace ferry::plan
