// The graph of a recording says what touches memory, and what must come before it.
//
// A node is an *action*: an op that reads or writes bytes, or one half of a copy that the host
// stages itself. Its predecessors are those of the rules of order alone (clocks.h): streams,
// events, host synchronisation, threads, tokens, the legacy stream. Any order of the actions that
// keeps to these (a linear extension) is one in which a device may run the recording. Of
// happens-before's memory, which access came last to which bytes, nothing is used here: that is
// what is being checked.
//
// Pools. A pool that was told of a use by another stream hands a block out again when that use is
// over; until then it hands out another block. So an allocation is an action of its host thread,
// with a set of actions that its pool waits for (`waits`). In an order in which these come first
// the new life of the bytes lies where the recording has it, beside what nobody protected;
// otherwise it lies apart, and meets none of the earlier lives. What went through cudaFree lies
// apart from what comes next. A block of several freed ones is judged piece by piece.
//
//     s1  ──K1 reads X───────┐ waits          order K1, alloc, K2: X' is where X was
//     h   ── record_use free └▶ alloc X'      order alloc, K2, K1: X' is elsewhere
//     s0  ─────────────────────────K2 writes X'
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "formats/stream_op.h"
#include "sim/explore/recording.h"

namespace ferry::explore {

using ActionId = std::uint32_t;  // in issue order
inline constexpr ActionId kNoAction = std::numeric_limits<ActionId>::max();

enum class ActionKind : std::uint8_t {
  kAccess,    // the op's accesses, all of them
  kStage,     // of a copy that the host stages: it reads the source …
  kDrain,     // … and the stream writes the rest
  kHandOut,   // an allocation whose pool waited for something
  kTakeBack,  // a free of host memory: whatever is there is no more
};

// Bytes of one life: what is accessed there before its allocation is another life's.
struct Piece {
  Range range;
  std::uint32_t life = 0;
};

struct Action {
  std::size_t op = 0;  // its place in the recording
  ActionKind kind = ActionKind::kAccess;
  bool by_host = false;
  bool offload = false;     // a copy to the host of the core's
  std::uint32_t actor = 0;  // its stream or host thread: the same number, one after the other
  std::uint32_t reads = 0, writes = 0, pieces = 0;  // how many, and where they begin
  std::uint32_t preds = 0, first_pred = 0;
};

// Life 0: bytes that nobody allocated, or not within the recording.
struct Life {
  std::size_t since = 0;  // the place of its alloc + 1: what was written before is not its content
  ActionId hand_out = kNoAction;
  std::vector<ActionId> waits;  // until these are done it is not where the recording has it
  std::vector<ActionId> uses;   // where it has waits
  // These are added to an address: beside the earlier lives, or apart from them.
  std::uint64_t beside = 0, apart = 0;
};

class OpGraph {
 public:
  // The recording outlives it. `host_free_waits`: as HappensBefore's option of that name, a free of
  // host memory is an action, after what its pool was told of.
  explicit OpGraph(const Recording& recording, bool host_free_waits = false);

  const Recording& recording() const { return *recording_; }
  std::size_t size() const { return actions_.size(); }
  const Action& operator[](ActionId id) const { return actions_[id]; }
  // Returns enough of them: those that follow from the others may be missing.
  std::span<const ActionId> preds(ActionId id) const {
    return {preds_.data() + actions_[id].first_pred, actions_[id].preds};
  }
  std::span<const Piece> reads(ActionId id) const {
    return {pieces_.data() + actions_[id].pieces, actions_[id].reads};
  }
  std::span<const Piece> writes(ActionId id) const {
    return {pieces_.data() + actions_[id].pieces + actions_[id].reads, actions_[id].writes};
  }
  const std::vector<Life>& lives() const { return lives_; }
  // Returns the bytes that anybody touched and that are allocated at the end, or never were.
  std::span<const Piece> left() const { return left_; }

  // The action of the op with this number that the host, or a stream, carries out; kNoAction where
  // there is none.
  ActionId find(std::uint64_t op_number, bool by_host) const;
  // Returns what must come before it, and itself, as flags by action.
  std::vector<char> before(ActionId later) const;

 private:
  friend class GraphBuilder;
  const Recording* recording_;
  std::vector<Action> actions_;
  std::vector<ActionId> preds_;
  std::vector<Piece> pieces_, left_;
  std::vector<Life> lives_;
};

}  // namespace ferry::explore
