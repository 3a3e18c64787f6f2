// Repeats a step for several micro-batches: the main code runs once for each, in a chosen order.
// `ferry plan --microbatches` uses it.
//
// The main code of a shipped program is one forward and one backward. Gradients accumulate in the
// globals, as in PyTorch; each micro-batch has its own slots.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/program.h"

namespace ferry {

// The main code of a step: one Call followed by one Backward.
struct MainStep {
  Call call;
  Backward backward;
  std::uint32_t call_line = 0;
  std::uint32_t backward_line = 0;
};
std::optional<MainStep> main_step(const Program& program);  // empty: the main code is different

// FBFB: each backward directly follows its forward. FFBB: all forwards, then all backwards, the
// last micro-batch first. 1F1B: two forwards, then a backward and a forward in turn, the oldest
// first.
enum class MicrobatchOrder : std::uint8_t { kFbfb, kFfbb, kOneForwardOneBackward };

// In captures from LibTorch the call also returns the loss, whose bytes the caller reads: the call
// has one more result, and there are a View and a Free around the backward. Returns such a program
// without these, so that its main code is a step. Returns any other program unchanged.
Program with_main_step(const Program& program);

// Throws std::invalid_argument if with_main_step does not make the main code one Call followed by
// one Backward.
Program with_microbatches(const Program& program, std::int64_t count, MicrobatchOrder order);

}  // namespace ferry
