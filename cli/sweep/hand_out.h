// A sweep over several ranks. Rank 0 sends each rank as many items as it can run at a time, and one
// more for each result that comes back, so a faster rank runs more items. Rank 0 runs items too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ranks/ranks.h"
#include "cli/sweep/runner.h"

namespace ferry::cli {

// The side of rank 0.
class HandOut {
 public:
  // `ranks` is null if there are no other ranks.
  explicit HandOut(Ranks* ranks);

  // Returns a rank that has room for an item; 0 if none has.
  int rank_with_room() const;
  void give(int rank, std::uint64_t number, const std::vector<std::string>& arguments);
  // Passes on the results that have arrived. Stops this process if a rank got a stop signal.
  void take(const std::function<void(std::uint64_t number, std::string_view outcome)>& result);

 private:
  Ranks* ranks_;
  std::vector<std::uint32_t> room_;  // items that each rank has room for
};

// The side of any other rank: runs the items that it gets until rank 0 releases it.
void serve_items(Ranks& ranks, const RunOptions& options);

}  // namespace ferry::cli
