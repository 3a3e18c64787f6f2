// Which of what stays on the device moves to the host.
//
// Evenly: so many bytes, of what is needed back last, spread over the first 85 % of the bytes that
// stay. Few are on their way at a time, and the window may be small; but what is in it when the
// forward ends stays.
//
// Paced: what is packed whenever the link has carried, at some pace, what moved before. The window
// is of packs in place of bytes: so many that each copy has ended when its source leaves, and no
// fewer than so many come after the last that moves. So all have left when the forward ends, and
// what comes back first can be little, for the moved ones are as far apart in backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "scenarios/hardware.h"
#include "shared/seam/options.h"
#include "sim/plan/keep_trace.h"
#include "sim/plan/mix.h"
#include "sim/plan/survey.h"

namespace ferry::plan {

// A storage that stays and may move.
struct Staying {
  std::size_t first = 0;  // its first pack
  std::size_t last = 0;   // its last pack; the higher, the sooner it is needed back
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

// When the device has run so many kernels of a step, by their number.
std::vector<sim::Time> kernel_ends(const KeepTrace& keep, sim::Time launch_ns);

// `ends`: kernel_ends. `pace`: in hundredths of the link's rate; above 100 copies queue. So many of
// the largest that moves come back early, or are held: `prefetch`.
void move_paced(Mix& mix, const Survey& survey, const std::vector<sim::Time>& ends,
                const Link& link, std::int64_t pace, std::int64_t prefetch, CoreOptions& options);

}  // namespace ferry::plan
