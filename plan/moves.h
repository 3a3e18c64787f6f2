// Two greedy selections of tensors to offload, from the saved tensors that are not recomputed, for
// the search over spans (span_search.h). The search tries both with several parameters and
// simulates the results; nothing here checks that a plan fits. Both mark the tensors in a mix and
// set the core's window, prefetch and hold to match.
//
// *Evenly* (move_evenly): a given number of bytes, of what backward needs last, spread over the
// first 85 % of the saved bytes. Few copies are under way at a time, so the window can be small. A
// storage that is in the window when the forward ends is not freed before backward.
//
// *In time* (move_in_time): the next tensor is taken whenever the link, at a given pace, has
// finished the copies before it, and if its copy ends before backward begins. The window counts
// saved tensors, not bytes: as many as are saved until any copy has ended. There are two kinds of
// prefetch. With `ahead`, the sources that are still in the window leave when backward begins, at
// the memory peak, and each tensor comes back `ahead` saved tensors before its use. With `room`,
// tensors come back as soon as there is room for `room` times the largest one, and a source that
// would still be in the window when backward begins is kept. `room` is for plans that keep few
// tensors: a count of saved tensors is then too coarse a measure of memory.
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

// A storage that is not recomputed and may be offloaded.
struct Staying {
  std::size_t first = 0;  // the index of its first save
  std::size_t last = 0;   // the index of its last save: the higher, the sooner backward needs it
  std::int64_t bytes = 0;
};

// Returns the storages of at least `min_bytes` that may be offloaded, by group.
std::map<std::uint64_t, Staying> staying(const Survey& survey, const Mix& mix,
                                         std::int64_t min_bytes);

// Returns the bytes that the link can copy to the host during the forward.
std::int64_t link_bytes(const KeepTrace& keep, const Hardware& hardware);

// Offloads at most `most` bytes. Sets the window, prefetch and hold of `options` to `window` times
// the largest storage that moves.
void move_evenly(Mix& mix, const Survey& survey, std::int64_t most, std::int64_t window,
                 CoreOptions& options);

// Returns for each count of kernels, from 0, the time at which the device has run that many.
std::vector<sim::Time> kernel_ends(const KeepTrace& keep, sim::Time launch_ns);

struct InTime {
  std::int64_t pace = 100;   // percent of the link's rate; above 100 the copies queue
  std::int64_t until = 100;  // the last copy ends by then: percent of the forward's time
  std::size_t ahead = 1;     // prefetch distance, in saved tensors
  std::int64_t room = 0;     // not 0: prefetch in multiples of the largest storage, not `ahead`
};
// `ends` is the result of kernel_ends. `turn_ns` is the time at which backward begins.
void move_in_time(Mix& mix, const Survey& survey, const std::vector<sim::Time>& ends,
                  sim::Time turn_ns, const Link& link, const InTime& how, CoreOptions& options);

}  // namespace ferry::plan
