// Repeats a step for several micro-batches: the main code once for each, in a chosen order.
//
// A shipped program's main code is one forward and one backward. Gradients accumulate in the
// globals, as they do in PyTorch; every micro-batch has slots of its own.
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
std::optional<MainStep> main_step(const Program& program);  // none: it is not such a step

// FBFB: each backward after its forward. FFBB: all forwards first, the last one's backward first.
// 1F1B: two forwards ahead, then a backward and a forward in turn, the oldest backward first.
enum class MicrobatchOrder : std::uint8_t { kFbfb, kFfbb, kOneForwardOneBackward };

// LibTorch's captures also hand the loss to the caller, who looks at its bytes: the call has a
// result more, and a View and a Free stand around the backward. Such a program without that, so
// that its main code is a step; every other program as it was.
Program with_main_step(const Program& program);

// Throws std::invalid_argument where the main code, without what the caller does with the loss, is
// not one Call followed by one Backward.
Program with_microbatches(const Program& program, std::int64_t count, MicrobatchOrder order);

}  // namespace ferry
