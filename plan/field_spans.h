// The recomputes that other systems would choose, as sets of spans of operators, for the policies
// knapsack and selective. The choices follow the published behaviour of these systems; where a
// replay begins and ends is Ferry's own choice.
//
// PyTorch's partitioner, with activation_memory_budget (torch/_functorch/partitioners.py, 2.11):
// operators that are not "compute intensive" are always recomputed. Among the results of the
// others, a knapsack keeps those whose operators take longest in total, within a share of their
// bytes (torch/_functorch/_activation_checkpointing/knapsack.py: `dp`, `greedy`). This share is its
// budget; it is no limit on the peak. Here a span ends with each operator that is kept. The fusion
// of recomputed operators is not modelled.
//
// torchtitan's selective checkpoints (torchtitan/distributed/activation_checkpoint.py, mode
// "selective", option "op"): in each block everything is recomputed except attention and every
// second matrix product. Here a block is a span.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "plan/span_table.h"

namespace ferry::plan {

// An operator: the time that keeping its result saves, and the bytes of the result.
struct KnapsackItem {
  std::int64_t ns = 0;
  std::int64_t bytes = 0;
};
// Selects items within `bytes` that have the most time in total, by dynamic programming. Sizes are
// counted in thousandths of the sum of all items, each rounded up.
std::vector<bool> dp_knapsack(const std::vector<KnapsackItem>& items, std::int64_t bytes);
// Takes the items in order of time for a byte, each that still fits.
std::vector<bool> greedy_knapsack(const std::vector<KnapsackItem>& items, std::int64_t bytes);

// True for matrix products, convolutions, bilinear upsampling and attention. `name` is the
// operator's name in a program.
bool is_compute_intensive(std::string_view name);

// Returns the sets of spans for shares of 0 to 20 twentieths, by both knapsacks, without
// duplicates. `names` are the names of the program's operators.
std::vector<std::vector<PlanSpan>> knapsack_spans(const SpanChoices& choices,
                                                  const std::vector<std::string>& names);

// The blocks are the modules that may be segments. Without such modules there are no spans.
std::vector<PlanSpan> selective_spans(const Program& program, const SpanChoices& choices,
                                      const std::vector<std::string>& names);

}  // namespace ferry::plan
