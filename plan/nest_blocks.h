// A forward in blocks of operators, and what it costs and holds to run some of them in a row again:
// what nested spans are chosen by (nest_table.h).
//
// Of few operators each is a block of its own; of more, blocks end where least is read later.
//
// A *sweep* over the blocks [begin, end) runs them again for their part of backward, once. What
// only operators and nodes from `end` on ask for it does not make. A block is *direct* in it if
// what the block's part of backward needs stays until then. Or the sweep runs *through* blocks: it
// keeps of them only what later ones ask for, their *frontier*, and leaves them to another sweep.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/span_model.h"

namespace ferry::plan {

class NestBlocks {
 public:
  NestBlocks(const SpanModel& model, std::size_t most);

  std::size_t blocks() const { return firsts_.size() - 1; }
  // Its first operator; of one past the last block, the number of operators.
  std::size_t first(std::size_t block) const { return firsts_[block]; }
  // A span that begins with the block may have all before this one.
  std::size_t reach(std::size_t block) const { return reach_[block]; }
  bool runs_again(std::size_t op) const { return again_[op]; }
  // True if it makes something that is saved, and all such is read or saved from the block `end` on
  // as well. (To keep an operator for one of its results would keep the others, too.)
  bool is_asked_from(std::size_t op, std::size_t end) const { return saved_until_[op] >= end; }

  // Bytes over the least that is beside any place: beside the block's forward and its backward; and
  // when backward comes to it.
  std::int64_t beside(std::size_t block) const { return beside_[block]; }
  std::int64_t carried(std::size_t block) const { return carried_[block]; }
  // Bytes that are saved of what the block makes.
  std::int64_t saved(std::size_t block) const { return saved_[block]; }

  struct Direct {
    sim::Time ns = 0;
    std::int64_t bytes = 0;
  };
  // In a sweep that ends at `end`. `held`: what is asked for from there on stays anyway, so its
  // makers do not run.
  const Direct& direct(std::size_t block, std::size_t end, bool held) const {
    return direct_[held ? 1 : 0][at(block, end)];
  }
  // Running through [begin, end): for how long, and the most that is in memory meanwhile.
  sim::Time through_ns(std::size_t begin, std::size_t end) const {
    return through_ns_[at(begin, end)];
  }
  std::int64_t through_bytes(std::size_t begin, std::size_t end) const {
    return through_bytes_[at(begin, end)];
  }
  // Of [begin, middle), in a sweep that ends at `end`.
  std::int64_t frontier(std::size_t begin, std::size_t middle, std::size_t end) const {
    return frontiers_[middle * width() * width() + at(begin, end)];
  }
  // What stays from the forward on where an outermost span has [begin, end). For those after it:
  // what it makes that is saved, and asked for from `end` on. For its own sweep: what it makes that
  // is saved and never runs again, and what it begins from and nobody saves.
  std::int64_t asked_later(std::size_t begin, std::size_t end) const {
    return asked_later_[at(begin, end)];
  }
  std::int64_t held(std::size_t begin, std::size_t end) const { return held_[at(begin, end)]; }

 private:
  struct Use {
    std::size_t block = 0;
    bool saves = false;  // or it reads
  };
  // A storage, with the blocks that ask for it, in order.
  struct Made {
    std::size_t block = 0;  // that makes it
    std::int64_t bytes = 0;
    bool saved = false;
    bool again = true;
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
  std::vector<std::size_t> saved_until_;  // the last block that asks for all that is saved of it
  std::vector<std::int64_t> beside_, carried_, saved_;
  std::vector<Made> made_;  // by storage
  std::array<std::vector<Direct>, 2> direct_;
  std::vector<sim::Time> through_ns_;
  std::vector<std::int64_t> through_bytes_, frontiers_, asked_later_, held_;
};

}  // namespace ferry::plan
