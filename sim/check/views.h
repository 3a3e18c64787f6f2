// Views: memory that the host may use without further entries in the log, from `host_view` to
// `host_view_end`. What the host does through a view cannot be judged. So the checker reports where
// this matters: where work on the same bytes is pending during the view.
//
//     host_view ──────────────────────────── host_view_end
//                copy ──────── sync                          between the two the host may read or
//                     ┊ here ┊                               write, and the log does not show it
//
// Work is pending from its line on until the host has waited for it. Work that the host waits for
// at once (`blocked`) is never pending. Happens-before knows the work that was pending when a view
// began. Reads count as well, because the host may write. Views of the same bytes are not told
// apart: an end belongs to the latest of them.
//
// Not modelled: that a view may be read-only, and that the host may use it only before the work.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::check {

class Views {
 public:
  struct View {
    std::uint64_t line = 0;
    std::string name;
    bool judged = true;  // no work was pending on its bytes
  };

  std::uint64_t count() const { return count_; }  // views so far, also those that have ended
  void begin(Range range, View view);
  void end(Range range);
  bool is_of(Range range) const;  // true if there is a view of exactly these bytes

  // Calls found(view) for each view that work on these bytes makes unjudged.
  template <class F>
  void touch(Range range, F&& found) {
    if (range.bytes == 0) return;
    const std::uint64_t first = range.address > longest_ ? range.address - longest_ : 0;
    for (auto at = views_.lower_bound({first, 0}); at != views_.end(); ++at) {
      const auto& [address, bytes] = at->first;
      if (address >= range.end()) return;
      if (address + bytes <= range.address) continue;
      for (View& view : at->second) {
        if (std::exchange(view.judged, false)) found(view);
      }
    }
  }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<View>> views_;  // by their bytes
  std::uint64_t longest_ = 0;                                                   // in bytes
  std::uint64_t count_ = 0;
};

}  // namespace ferry::check
