// A sweep over several ranks: rank 0 hands items out, one for each that a rank has room for, and
// gets what became of them. Who is faster does more. Rank 0 runs items as well.
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

// Rank 0's side.
class HandOut {
 public:
  // Null: there are no other ranks.
  explicit HandOut(Ranks* ranks);

  // A rank that has room; 0 where none has.
  int rank_with_room() const;
  void give(int rank, std::uint64_t number, const std::vector<std::string>& arguments);
  // What came; asks to stop where a rank was asked to.
  void take(const std::function<void(std::uint64_t number, std::string_view outcome)>& result);

 private:
  Ranks* ranks_;
  std::vector<std::uint32_t> room_;  // of each rank
};

// Any other rank's: runs what it is given until it is let go.
void serve_items(Ranks& ranks, const RunOptions& options);

}  // namespace ferry::cli
