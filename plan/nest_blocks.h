// A forward cut into blocks of operators, and the time and memory of recomputing consecutive
// blocks: the input of the dynamic program over nested spans (nest_table.h).
//
// If there are few operators, each is a block. Otherwise blocks end where the fewest bytes are
// still needed.
//
// A *sweep* over the blocks [begin, end) recomputes them once, for their part of backward. It does
// not make results that only operators and nodes from `end` on need. It treats a block in one of
// two ways. A *direct* block keeps the results that its part of backward needs, until then. Or the
// sweep runs *through* blocks: it keeps only the results that later blocks need, the *frontier*,
// and a later sweep recomputes these blocks again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/span_model.h"

namespace ferry::plan {

class NestBlocks {
 public:
  // Makes at most about `most` blocks.
  NestBlocks(const SpanModel& model, std::size_t most);

  std::size_t blocks() const { return firsts_.size() - 1; }
  // The first operator of a block. One past the last block: the number of operators.
  std::size_t first(std::size_t block) const { return firsts_[block]; }
  // A span that begins with the block can contain the blocks before this one.
  std::size_t reach(std::size_t block) const { return reach_[block]; }
  bool runs_again(std::size_t op) const { return again_[op]; }
  // True if the operator has saved results, and all of them are also read or saved from the block
  // `end` on. (Keeping an operator for one of its results keeps the others too.)
  bool is_asked_from(std::size_t op, std::size_t end) const { return saved_until_[op] >= end; }

  // Other memory beyond SpanModel::least_bytes, in bytes: the most in the block's forward and
  // backward, and the amount when backward arrives at the block.
  std::int64_t beside(std::size_t block) const { return beside_[block]; }
  std::int64_t carried(std::size_t block) const { return carried_[block]; }
  // Saved bytes that the block makes.
  std::int64_t saved(std::size_t block) const { return saved_[block]; }

  struct Direct {
    sim::Time ns = 0;
    std::int64_t bytes = 0;
  };
  // The time and bytes of a direct block in a sweep that ends at `end`. With `held`, results that
  // are needed from `end` on are in memory already, so their makers are not recomputed.
  const Direct& direct(std::size_t block, std::size_t end, bool held) const {
    return direct_[held ? 1 : 0][at(block, end)];
  }
  // Running through the blocks [begin, end): the time, and the most bytes in memory meanwhile.
  sim::Time through_ns(std::size_t begin, std::size_t end) const {
    return through_ns_[at(begin, end)];
  }
  std::int64_t through_bytes(std::size_t begin, std::size_t end) const {
    return through_bytes_[at(begin, end)];
  }
  // Bytes of the frontier of the blocks [begin, middle), in a sweep that ends at `end`.
  std::int64_t frontier(std::size_t begin, std::size_t middle, std::size_t end) const {
    return frontiers_[middle * width() * width() + at(begin, end)];
  }
  // Bytes that stay in memory from the forward on for an outermost span over [begin, end).
  // asked_later: its saved results that are needed from `end` on. held, for its own sweep: its
  // saved results that cannot be recomputed, and the unsaved inputs of its replay.
  std::int64_t asked_later(std::size_t begin, std::size_t end) const {
    return asked_later_[at(begin, end)];
  }
  std::int64_t held(std::size_t begin, std::size_t end) const { return held_[at(begin, end)]; }

 private:
  struct Use {
    std::size_t block = 0;
    bool saves = false;  // a node of the block saves it; false: operators only read it
  };
  // A storage, with the blocks that read or save it, in order.
  struct Made {
    std::size_t block = 0;  // the block that makes it
    std::int64_t bytes = 0;
    bool saved = false;
    bool again = true;  // it can be recomputed
    std::vector<Use> uses = {};
  };

  std::size_t width() const { return blocks() + 1; }
  std::size_t at(std::size_t row, std::size_t column) const { return row * width() + column; }
  void cut(const SpanModel& model, std::size_t most);
  void set_blocks(const SpanModel& model);
  void set_made(const SpanModel& model);
  void set_direct(const SpanModel& model, bool held);
  void set_through(const SpanModel& model);
  void set_frontiers();
  void set_retained();

  std::vector<std::size_t> firsts_;    // operators, by block
  std::vector<std::size_t> block_of_;  // by operator
  std::vector<std::size_t> reach_;
  std::vector<bool> again_;
  std::vector<std::size_t> saved_until_;  // by operator: the last block that needs all its saves
  std::vector<std::int64_t> beside_, carried_, saved_;
  std::vector<Made> made_;  // by storage
  std::array<std::vector<Direct>, 2> direct_;
  std::vector<sim::Time> through_ns_;
  std::vector<std::int64_t> through_bytes_, frontiers_, asked_later_, held_;
};

}  // namespace ferry::plan
