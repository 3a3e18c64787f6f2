// Which of what stays on the device moves to the host.
//
// Evenly: so many bytes, of what is needed back last, spread over the first 85 % of the bytes that
// stay. Few are on their way at a time, and the window may be small; but what is in it when the
// forward ends stays.
//
// In time: what is packed whenever the link has carried, at some pace, what moved before, as long
// as it is out when backward begins. The window is of packs in place of bytes: so many that each
// copy has ended when its source leaves. What it still has when backward begins leaves then, and
// what moved comes back a number of packs ahead of its use: not yet at the peak, and before
// backward would wait for it.
//
// Or it comes back as soon as there is room for so many of the largest. Then nothing leaves when
// backward begins, and what the window would still have stays. Where few tensors are kept, packs
// are too coarse a measure of what comes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "plan/keep_trace.h"
#include "plan/mix.h"
#include "plan/survey.h"
#include "scenarios/hardware.h"
#include "shared/seam/options.h"

namespace ferry::plan {

// A storage that stays and may move.
struct Staying {
  std::size_t first = 0;  // its first pack
  std::size_t last = 0;   // its last pack; the higher, the sooner it is needed back
  std::int64_t bytes = 0;
};

// By group.
std::map<std::uint64_t, Staying> staying(const Survey& survey, const Mix& mix,
                                         std::int64_t min_bytes);

// What the link carries out in the time of the forward: so much can leave by the turn.
std::int64_t link_bytes(const KeepTrace& keep, const Hardware& hardware);

// Moves at most so many bytes. The windows of `options` become so many of the largest storage that
// moves.
void move_evenly(Mix& mix, const Survey& survey, std::int64_t most, std::int64_t window,
                 CoreOptions& options);

// When the device has run so many kernels of a step, by their number.
std::vector<sim::Time> kernel_ends(const KeepTrace& keep, sim::Time launch_ns);

struct InTime {
  std::int64_t pace = 100;   // in hundredths of the link's rate; above 100 copies queue
  std::int64_t until = 100;  // of the time until backward begins, in hundredths
  std::size_t ahead = 1;     // packs
  std::int64_t room = 0;     // not 0: for so many of the largest, in place of `ahead`
};
// `ends`: kernel_ends. `turn_ns`: when backward begins.
void move_in_time(Mix& mix, const Survey& survey, const std::vector<sim::Time>& ends,
                  sim::Time turn_ns, const Link& link, const InTime& how, CoreOptions& options);

}  // namespace ferry::plan
