// The graph of a recording: which actions touch memory, and what must come before each of them.
//
// A node is an *action*: an op that reads or writes bytes, or one half of a copy that the host
// stages itself. Its predecessors follow only from the rules of order (clocks.h): streams, events,
// host synchronisation, threads, tokens, the legacy stream. A device may run the recording in any
// order of the actions that keeps to these (a linear extension). The graph does not use what
// happens-before remembers of memory (which access came last to which bytes), because that is to be
// checked.
//
// Pools. A pool that was told of a use by another stream reuses the block only after that use;
// until then it hands out another block. So an allocation is an action of its host thread, with a
// set of actions that its pool waits for (`waits`). In an order in which these come first, the new
// life of the bytes has the recorded address, and can meet earlier uses that nobody protected. In
// other orders it lies apart, and meets no earlier life. After cudaFree, the next life of the bytes
// always lies apart. A block that joins several freed blocks is judged piece by piece.
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

using ActionId = std::uint32_t;  // numbered in issue order
inline constexpr ActionId kNoAction = std::numeric_limits<ActionId>::max();

enum class ActionKind : std::uint8_t {
  kAccess,    // all accesses of the op
  kStage,     // the first half of a copy that the host stages: the host reads the source
  kDrain,     // the second half: the stream writes the target
  kHandOut,   // an allocation whose pool waited for something
  kTakeBack,  // a free of host memory: the contents are lost
};

// Bytes of one life. Accesses to them before the allocation belong to another life.
struct Piece {
  Range range;
  std::uint32_t life = 0;
};

struct Action {
  std::size_t op = 0;  // its index in the recording
  ActionKind kind = ActionKind::kAccess;
  bool by_host = false;
  bool offload = false;     // a copy to the host by the core
  std::uint32_t actor = 0;  // its stream or host thread, whose actions run in issue order
  std::uint32_t reads = 0, writes = 0, pieces = 0;  // counts, and the index of its first piece
  std::uint32_t preds = 0, first_pred = 0;
};

// An allocation of some bytes. Life 0: bytes that nobody allocated within the recording.
struct Life {
  std::size_t since = 0;  // the index of its alloc + 1: earlier writes are not its content
  ActionId hand_out = kNoAction;
  std::vector<ActionId> waits;  // it has its recorded address only after these
  std::vector<ActionId> uses;   // only if it has waits
  // One of these is added to an address: to lie with the earlier lives, or apart from them.
  std::uint64_t beside = 0, apart = 0;
};

class OpGraph {
 public:
  // The recording must outlive the graph. `host_free_waits`: as with HappensBefore's option of that
  // name, a free of host memory is an action, and comes after the uses that its pool was told of.
  explicit OpGraph(const Recording& recording, bool host_free_waits = false);

  const Recording& recording() const { return *recording_; }
  std::size_t size() const { return actions_.size(); }
  const Action& operator[](ActionId id) const { return actions_[id]; }
  // Returns enough predecessors: those that follow from the others may be missing.
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
  // Returns the bytes that some op touched and that are allocated at the end, or never were.
  std::span<const Piece> left() const { return left_; }

  // Returns the action of the op with this number on the host, or on a stream; kNoAction if there
  // is none.
  ActionId find(std::uint64_t op_number, bool by_host) const;
  // Returns a flag for each action: true for those that must come before `later`, and for itself.
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
