// Computes what the actions of a recording see when they run in some order. Contents are symbolic;
// there is no time.
//
// Contents are hashes of what was read, as in sim/check/values.h, with one difference: each write
// of each op makes its own values, also that of a copy. So an access that meets another op's write
// than it should always sees another value. Equal bytes from different ops count as different,
// because the program asked for one of them.
//
// Alloc and free do not change bytes. Bytes that are left from an earlier life are undefined in the
// new life, and all undefined bytes are equal, whichever block the pool handed out. So an order is
// wrong only if an access meets another op's write than in issue order, and that write is of this
// life or came after its beginning.
//
// Compared with issue order, an order may show one of these:
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

// Bytes that an access met, and the action that wrote them; kNoAction: they are undefined.
struct Sight {
  Range range;
  ActionId writer = kNoAction;
  std::uint64_t value = 0;
  bool operator==(const Sight&) const = default;
};

// The memory of the device and the host while one order runs.
class Memory {
 public:
  // `order` has all actions: it decides where the pools hand lives out.
  Memory(const OpGraph& graph, std::span<const ActionId> order);

  void run(ActionId action);
  // These return what the action would read, and what it would replace, if it ran now.
  std::uint64_t read(ActionId action) const { return read(graph_->reads(action), action); }
  std::uint64_t replaced(ActionId action) const { return read(graph_->writes(action), action); }
  std::uint64_t left(const Piece& piece) const;
  // Returns the pieces as the action would meet them; kNoAction: as they are at the end.
  std::vector<Sight> look(std::span<const Piece> pieces, ActionId by) const;

 private:
  struct Content {
    std::uint64_t value = 0;  // 0: undefined
    ActionId writer = kNoAction;
    ActionId gone = 0;  // freed by this action: for actions issued before it, the contents are lost
    bool operator==(const Content&) const = default;
  };
  template <class F>
  void each(const Piece& piece, ActionId by, F&& f) const;  // f(begin, end, content)
  std::uint64_t read(std::span<const Piece> pieces, ActionId by) const;

  const OpGraph* graph_;
  std::vector<std::uint64_t> shift_;   // by life
  std::vector<std::uint64_t> staged_;  // by action: what the host read just before it
  check::IntervalMap<Content> contents_;
};

struct Outcome {
  std::vector<std::uint64_t> read, replaced;  // by action
  std::vector<std::uint64_t> left;            // by OpGraph::left()
  bool operator==(const Outcome&) const = default;
};

Outcome run_schedule(const OpGraph& graph, std::span<const ActionId> order);
Outcome run_in_issue_order(const OpGraph& graph);

// How two outcomes differ: the strongest evidence, and the first place in the order with it.
struct Difference {
  Evidence evidence = Evidence::kRead;
  ActionId action = kNoAction;  // kRead, kUnread: the action whose access differs
  std::size_t left = 0;         // kLeft: an index of OpGraph::left()
};
// Returns nothing if the outcomes are equal.
std::optional<Difference> compare(const OpGraph& graph, std::span<const ActionId> order,
                                  const Outcome& reference, const Outcome& outcome);

// The first bytes that differ, and who wrote them in issue order and in the other order. The writer
// may be the same, if it saw another value itself.
struct Met {
  Range range;
  ActionId expected = kNoAction, actual = kNoAction;
};
Met explain(const OpGraph& graph, std::span<const ActionId> order, const Difference& difference);

// True if, on some of these bytes, the action meets another op's write in `order` than in issue
// order.
bool meets_another(const OpGraph& graph, std::span<const ActionId> order, ActionId action,
                   Range range);

}  // namespace ferry::explore
