// Which of what stays on the device moves to the host, where so many bytes are to move: what is
// needed back last, evenly over the first 85 % of the bytes that stay, so that the link is busy
// without a queue, and has time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "scenarios/hardware.h"
#include "shared/seam/options.h"
#include "sim/plan/keep_trace.h"
#include "sim/plan/mix.h"
#include "sim/plan/survey.h"

namespace ferry::plan {

// A storage that stays and may move.
struct Staying {
  std::size_t last = 0;  // its last pack; the higher, the sooner it is needed back
  std::int64_t bytes = 0;
};

// By group.
std::map<std::uint64_t, Staying> staying(const Survey& survey, const Mix& mix,
                                         std::int64_t bytes_min);

// What the link carries out in the time of the forward: so much can leave by the turn.
std::int64_t link_bytes(const KeepTrace& keep, const Hardware& hardware);

// Moves at most so many bytes. The windows of `options` become so many of the largest storage that
// moves.
void move_evenly(Mix& mix, const Survey& survey, std::int64_t most, std::int64_t window,
                 CoreOptions& options);

}  // namespace ferry::plan
