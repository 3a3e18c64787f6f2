// Views: memory that the host was given to use without a word in the log (`host_view`), until the
// view ends. What is done through one cannot be judged. It has to be said where that matters: where
// work on the same bytes is pending while there is a view of them.
//
//     host_view ──────────────────────────── host_view_end
//                copy ──────── sync                          between the two the host may read,
//                     ┊ here ┊                               or write, and nobody knows
//
// Work is pending from its line on, until the host has waited for it; work that the host waits for
// at once (`blocked`) never is. What was pending when a view began is happens-before's to say.
// Reads count as well, for the host may write. Views of the same bytes are not told apart: an end
// is that of the latest of them.
//
// Not modelled: that a view can only be read, and that the host uses it before the work alone.
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

  std::uint64_t count() const { return count_; }  // of all
  void begin(Range range, View view);
  void end(Range range);
  bool is_of(Range range) const;  // there is one of just these bytes

  // Calls found(view) for each view that work of these bytes makes an unjudged one.
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
