// Works out what a recording's actions see when they run in some order: symbolic contents, no time.
//
// Contents are as in checkers/values.h, hashes of what was read, with one difference: every write
// of every op makes values of its own, copies too, so that an access that meets another op's write
// than it should always sees another value. Equal bytes by different ways count as different: the
// program asked for one of the two.
//
// Alloc and free do nothing to bytes. What is left of an earlier life is undefined, for whoever
// uses the bytes in their new life: all alike, whatever it is, and whether the pool handed out this
// block or another. So an order is wrong only when somebody meets what was written in this life, or
// after it began, by another op than in issue order.
//
// Compared with issue order, an order may show that
//   kRead         an access sees another value;
//   kLeft         memory that is still allocated at the end has another value;
//   kUnread       a write replaced other contents than it should, and nobody reads either; or the
//                 program tears, in place, an `offload` that nobody reads (happens_before.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/check/interval_map.h"
#include "sim/explore/op_graph.h"

namespace ferry::explore {

enum class Evidence : std::uint8_t { kRead, kLeft, kUnread };

// The bytes that an access met, and the action that wrote them; kNoAction: they are undefined.
struct Sight {
  Range range;
  ActionId writer = kNoAction;
  std::uint64_t value = 0;
  bool operator==(const Sight&) const = default;
};

// A device's and the host's memory, while one order runs.
class Memory {
 public:
  // `order`: of all actions; where the pools hand lives out depends on it.
  Memory(const OpGraph& graph, std::span<const ActionId> order);

  void run(ActionId action);
  // Return what the action would read, and what it would replace, if it ran now.
  std::uint64_t read(ActionId action) const { return read(graph_->reads(action), action); }
  std::uint64_t replaced(ActionId action) const { return read(graph_->writes(action), action); }
  std::uint64_t left(const Piece& piece) const;
  // Pieces, as the action meets them; kNoAction: as they are at the end.
  std::vector<Sight> look(std::span<const Piece> pieces, ActionId by) const;

 private:
  struct Content {
    std::uint64_t value = 0;  // 0: undefined
    ActionId writer = kNoAction;
    ActionId gone = 0;  // taken back by it: for those issued before, nothing is there
    bool operator==(const Content&) const = default;
  };
  template <class F>
  void each(const Piece& piece, ActionId by, F&& f) const;  // f(begin, end, content)
  std::uint64_t read(std::span<const Piece> pieces, ActionId by) const;

  const OpGraph* graph_;
  std::vector<std::uint64_t> shift_;   // by life
  std::vector<std::uint64_t> staged_;  // by action: what the host read for the one that follows
  check::IntervalMap<Content> contents_;
};

struct Outcome {
  std::vector<std::uint64_t> read, replaced;  // by action
  std::vector<std::uint64_t> left;            // by OpGraph::left()
  bool operator==(const Outcome&) const = default;
};

Outcome run_schedule(const OpGraph& graph, std::span<const ActionId> order);
Outcome run_in_issue_order(const OpGraph& graph);

// Finds the strongest evidence that the outcomes differ, and the first place in `order` with it.
struct Difference {
  Evidence evidence = Evidence::kRead;
  ActionId action = kNoAction;  // kRead, kUnread: whose access
  std::size_t left = 0;         // kLeft: which of OpGraph::left()
};
std::optional<Difference> compare(const OpGraph& graph, std::span<const ActionId> order,
                                  const Outcome& reference, const Outcome& outcome);

// Says what the differing place met in issue order, and what in `order`, on the first such bytes.
// The writer may be the same, if it saw another value itself.
struct Met {
  Range range;
  ActionId expected = kNoAction, actual = kNoAction;
};
Met explain(const OpGraph& graph, std::span<const ActionId> order, const Difference& difference);

// Whether on some of these bytes the action meets, in `order`, another op's write than in issue
// order.
bool meets_another(const OpGraph& graph, std::span<const ActionId> order, ActionId action,
                   Range range);

}  // namespace ferry::explore
