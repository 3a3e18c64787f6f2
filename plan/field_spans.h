// What other systems recompute, as sets of spans of operators. These are re-enactments of their
// choices, from their published behaviour: where a replay begins and ends is ours.
//
// PyTorch's partitioner, with activation_memory_budget (torch/_functorch/partitioners.py, 2.11):
// what is not "compute intensive" runs again in any case, and of the results of operators that are,
// a knapsack keeps those whose operators take longest together, within a share of their bytes
// (torch/_functorch/_activation_checkpointing/knapsack.py: `dp`, `greedy`). Its budget is that
// share, and says nothing of the peak. A span here ends with each operator that is kept.
//
// torchtitan's selective checkpoints (torchtitan/distributed/activation_checkpoint.py, mode
// "selective", option "op"): in each block all runs again but attention and every second matrix
// product. A block is a span.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "plan/span_table.h"

namespace ferry::plan {

// Of operators that each take a time and keep some bytes.
struct KnapsackItem {
  std::int64_t ns = 0;
  std::int64_t bytes = 0;
};
// Which of them to keep within so many bytes, for the most time; `dp` counts bytes in thousandths
// of all, each rounded up.
std::vector<bool> dp_knapsack(const std::vector<KnapsackItem>& items, std::int64_t bytes);
// By time for a byte, each that still fits.
std::vector<bool> greedy_knapsack(const std::vector<KnapsackItem>& items, std::int64_t bytes);

// Products of matrices, convolutions and attention, by an operator's name in a program.
bool is_compute_intensive(std::string_view name);

// The spans for shares of 0 to 20 twentieths, by both knapsacks; each set once. `names`: of the
// program's operators.
std::vector<std::vector<PlanSpan>> knapsack_spans(const SpanChoices& choices,
                                                  const std::vector<std::string>& names);

// The blocks are the modules that may be segments; without any, no span.
std::vector<PlanSpan> selective_spans(const Program& program, const SpanChoices& choices,
                                      const std::vector<std::string>& names);

}  // namespace ferry::plan
