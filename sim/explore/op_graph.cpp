// Builds the graph in one pass over the recording. Clocks tell which actions come before an action;
// lives tell to which allocation its bytes belong.
#include "sim/explore/op_graph.h"

#include <algorithm>
#include <utility>

#include "sim/check/clocks.h"
#include "sim/check/hazard.h"
#include "sim/check/interval_map.h"

namespace ferry::explore {
namespace {

// Lives that must meet no others get addresses from here on, above all real ones.
constexpr std::uint64_t kApart = std::uint64_t{1} << 63;

// The allocation of some bytes or, after its free, their last one.
struct Allocation {
  std::uint32_t life = 0;
  std::uint64_t beside = 0;
  Range whole;  // the range of the allocation
  check::Clocks::Place owner;
  bool freed = false;
  bool synchronised = false;               // freed by cudaFree
  std::vector<check::Clocks::Place> uses;  // streams of record_use
  std::vector<std::uint32_t> until;        // clock of the events of record_use; empty: none
  std::vector<std::uint32_t> waits;        // the clock that the pool waits for; empty: nothing
};

}  // namespace

class GraphBuilder {
 public:
  GraphBuilder(OpGraph& graph, bool host_free_waits)
      : graph_(graph), host_free_waits_(host_free_waits) {
    graph_.lives_.emplace_back();
  }

  void give(std::size_t place, const StreamOp& op) {
    place_ = place;
    switch (op.kind) {
      case StreamOpKind::kKernel:
      case StreamOpKind::kCopy:
      case StreamOpKind::kMemset:
      case StreamOpKind::kHostFunc:
        return on_stream(op);
      case StreamOpKind::kHostRead:
      case StreamOpKind::kHostWrite:
        return on_host(op);
      case StreamOpKind::kAlloc:
        return alloc(op);
      case StreamOpKind::kFree:
        if (host_free_waits_ && (check::is_host(op.range.address) || op.pool == PoolKind::kHost)) {
          take_back(op);
        }
        return free(op);
      case StreamOpKind::kRecordUse:
        return record_use(op);
      default:
        return clocks_.order(op);
    }
  }

  void finish() {
    touched_.visit(0, ~std::uint64_t{0}, [&](std::uint64_t begin, std::uint64_t end, char) {
      each_life({begin, end - begin}, [&](Range range, const Allocation* block) {
        if (block != nullptr && block->freed) return;
        graph_.left_.push_back({range, block == nullptr ? 0 : block->life});
      });
    });
  }

 private:
  std::uint32_t seq() const { return static_cast<std::uint32_t>(place_) + 1; }

  void on_stream(const StreamOp& op) {
    const check::Clocks::Actor stream = clocks_.issue(op.stream, op.thread);
    const check::Clocks::Actor host = clocks_.thread(op.thread);
    if (op.host_order == HostOrder::kStaged) {
      clocks_.host_waits(host, clocks_.clock(stream));
      clocks_.act_on_host(host, seq());
      add(ActionKind::kStage, op, host, op.reads, {}, {});
      const check::Clocks::Actor again = clocks_.issue(op.stream, op.thread);
      clocks_.act(again, seq());
      return add(ActionKind::kDrain, op, again, {}, {}, op.writes);
    }
    clocks_.act(stream, seq());
    add(ActionKind::kAccess, op, stream, op.reads, {}, op.writes);
    if (op.host_order == HostOrder::kDone) clocks_.host_waits(host, clocks_.clock(stream));
  }

  void on_host(const StreamOp& op) {
    const check::Clocks::Actor host = clocks_.thread(op.thread);
    clocks_.act_on_host(host, seq());
    add(ActionKind::kAccess, op, host, op.reads, op.range, op.writes);
  }

  // `own`: the range of a host read or a host write.
  void add(ActionKind kind, const StreamOp& op, check::Clocks::Actor actor,
           std::span<const Range> reads, Range own, std::span<const Range> writes) {
    const auto id = static_cast<ActionId>(graph_.actions_.size());
    Action action;
    action.op = place_;
    action.kind = kind;
    action.by_host = clocks_.is_thread(actor);
    action.offload = op.step == Step::kOffload && op.kind == StreamOpKind::kCopy;
    action.actor = actor;
    action.pieces = static_cast<std::uint32_t>(graph_.pieces_.size());
    for (const Range& range : reads) action.reads += touch(id, range);
    if (op.kind == StreamOpKind::kHostRead) action.reads += touch(id, own);
    for (const Range& range : writes) action.writes += touch(id, range);
    if (op.kind == StreamOpKind::kHostWrite) action.writes += touch(id, own);
    follow(action, known(clocks_.clock(actor), clocks_.width()));
    graph_.actions_.push_back(action);
    if (actor >= done_.size()) done_.resize(actor + std::size_t{1});
    done_[actor].emplace_back(seq(), id);
  }

  void follow(Action& action, const std::vector<ActionId>& preds) {
    action.first_pred = static_cast<std::uint32_t>(graph_.preds_.size());
    action.preds = static_cast<std::uint32_t>(preds.size());
    graph_.preds_.insert(graph_.preds_.end(), preds.begin(), preds.end());
  }

  // Finds the last action of each actor that the clock has as done.
  std::vector<ActionId> known(const std::uint32_t* clock, std::size_t width) const {
    std::vector<ActionId> actions;
    for (std::size_t actor = 0; actor < std::min(width, done_.size()); ++actor) {
      const auto& done = done_[actor];
      const auto behind =
          std::upper_bound(done.begin(), done.end(), std::pair(clock[actor], kNoAction));
      if (behind != done.begin()) actions.push_back(std::prev(behind)->second);
    }
    return actions;
  }

  // Cuts the range into pieces by lives. Returns the number of pieces.
  std::uint32_t touch(ActionId id, Range range) {
    std::uint32_t pieces = 0;
    if (range.bytes == 0) return 0;
    touched_.replace(range.address, range.end(), 1);
    each_life(range, [&](Range part, const Allocation* block) {
      const std::uint32_t life = block == nullptr ? 0 : block->life;
      if (!graph_.lives_[life].waits.empty()) graph_.lives_[life].uses.push_back(id);
      graph_.pieces_.push_back({part, life});
      pieces++;
    });
    return pieces;
  }

  // Calls f(part, block) for each part of the range. `block` is null for bytes without an
  // allocation.
  template <class F>
  void each_life(Range range, F&& f) const {
    std::uint64_t at = range.address;
    blocks_.visit(range.address, range.end(),
                  [&](std::uint64_t begin, std::uint64_t end, const Allocation& block) {
                    if (at < begin) f(Range{at, begin - at}, nullptr);
                    at = std::max(at, begin);
                    end = std::min(end, range.end());
                    f(Range{at, end - at}, &block);
                    at = end;
                  });
    if (at < range.end()) f(Range{at, range.end() - at}, nullptr);
  }

  void alloc(const StreamOp& op) {
    if (op.range.bytes == 0) return;
    const auto hand_out = static_cast<ActionId>(graph_.actions_.size());
    bool waited = false;
    for (auto& [range, block] : inherited(op.range)) {
      Life life;
      life.since = seq();
      life.beside = block.beside;
      life.waits = known(block.waits.data(), block.waits.size());
      if (!life.waits.empty()) {
        life.hand_out = hand_out;
        life.apart = apart(range);
        waited = true;
      }
      block.life = static_cast<std::uint32_t>(graph_.lives_.size());
      block.whole = op.range;
      if (!check::is_host(op.range.address) && op.pool != PoolKind::kHost) {
        block.owner = clocks_.place(clocks_.stream(op.stream));
      }
      graph_.lives_.push_back(std::move(life));
      blocks_.replace(range.address, range.end(), block);
    }
    if (!waited) return;
    const check::Clocks::Actor host = clocks_.thread(op.thread);
    clocks_.act_on_host(host, seq());
    add(ActionKind::kHandOut, op, host, {}, {}, {});
  }

  // Finds what a new allocation of the range takes over from earlier lives of its bytes.
  std::vector<std::pair<Range, Allocation>> inherited(Range whole) {
    std::vector<std::pair<Range, Allocation>> parts;
    each_life(whole, [&](Range range, const Allocation* old) {
      Allocation block;
      if (old != nullptr && old->synchronised) {
        block.beside = apart(range);
      } else if (old != nullptr) {
        block.beside = old->beside;
        block.waits = old->waits;
      }
      if (!parts.empty() && parts.back().second.beside == block.beside &&
          parts.back().second.waits == block.waits) {
        parts.back().first.bytes += range.bytes;
      } else {
        parts.emplace_back(range, std::move(block));
      }
    });
    return parts;
  }

  // Adds the pool's own action at a free: it runs when all that the pool waits for is over. No
  // other action waits for it.
  void take_back(const StreamOp& op) {
    const check::Clocks::Actor host = clocks_.thread(op.thread);
    std::vector<std::uint32_t> clock(clocks_.clock(host), clocks_.clock(host) + clocks_.width());
    blocks_.visit(op.range.address, op.range.end(),
                  [&](std::uint64_t, std::uint64_t, const Allocation& block) {
                    join(clock, block.until);
                    for (const check::Clocks::Place use : block.uses) {
                      if (!clocks_.is_there(use)) continue;
                      check::ClockRows::join(clock.data(), clocks_.clock(use.actor),
                                             clocks_.width());
                    }
                  });
    const auto id = static_cast<ActionId>(graph_.actions_.size());
    Action action;
    action.op = place_;
    action.kind = ActionKind::kTakeBack;
    action.by_host = true;
    action.actor = host;
    action.pieces = static_cast<std::uint32_t>(graph_.pieces_.size());
    action.writes = touch(id, op.range);
    follow(action, known(clock.data(), clock.size()));
    graph_.actions_.push_back(action);
  }

  void free(const StreamOp& op) {
    const std::uint32_t* host = clocks_.clock(clocks_.thread(op.thread));
    blocks_.update(
        op.range.address, op.range.end(), [&](std::uint64_t, std::uint64_t, Allocation& block) {
          block.freed = true;
          block.synchronised |= op.pool == PoolKind::kMalloc;
          for (const check::Clocks::Place use : block.uses) {
            block.waits.resize(clocks_.width(), 0);
            if (clocks_.is_there(use)) {
              check::ClockRows::join(block.waits.data(), clocks_.clock(use.actor), clocks_.width());
            }
            check::ClockRows::join(block.waits.data(), host, clocks_.width());
          }
          block.uses.clear();
          join(block.waits, std::exchange(block.until, {}));
        });
  }

  // Records the use for the whole allocation, wherever in it the range lies.
  void record_use(const StreamOp& op) {
    const check::Clocks::Place stream = clocks_.place(clocks_.stream(op.stream));
    const std::uint32_t* const recorded = clocks_.clock(op.event);
    Range range = op.range;
    const Allocation* block = blocks_.find(range.address);
    if (block != nullptr && block->whole.bytes != 0) range = block->whole;
    blocks_.update(range.address, range.end(), [&](std::uint64_t, std::uint64_t, Allocation& part) {
      if (op.until_event) {
        if (recorded == nullptr) return;
        return join(part.until, {recorded, recorded + clocks_.width()});
      }
      if (stream == part.owner) return;
      if (std::find(part.uses.begin(), part.uses.end(), stream) == part.uses.end()) {
        part.uses.push_back(stream);
      }
    });
  }

  static void join(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& from) {
    into.resize(std::max(into.size(), from.size()), 0);
    check::ClockRows::join(into.data(), from.data(), static_cast<std::uint32_t>(from.size()));
  }

  // Returns an offset that moves the range to addresses where nothing else is.
  std::uint64_t apart(Range range) {
    const std::uint64_t shift = kApart + apart_ - range.address;
    apart_ += range.bytes;
    return shift;
  }

  OpGraph& graph_;
  bool host_free_waits_;
  check::Clocks clocks_;
  check::IntervalMap<Allocation> blocks_;
  check::IntervalMap<char> touched_;
  std::vector<std::vector<std::pair<std::uint32_t, ActionId>>> done_;  // by actor: (seq, action)
  std::size_t place_ = 0;
  std::uint64_t apart_ = 0;
};

OpGraph::OpGraph(const Recording& recording, bool host_free_waits) : recording_(&recording) {
  GraphBuilder builder(*this, host_free_waits);
  for (std::size_t i = 0; i < recording.size(); ++i) builder.give(i, recording[i]);
  builder.finish();
}

ActionId OpGraph::find(std::uint64_t op_number, bool by_host) const {
  const auto place = recording_->find(op_number);
  if (!place) return kNoAction;
  const auto first =
      std::lower_bound(actions_.begin(), actions_.end(), *place,
                       [](const Action& action, std::size_t wanted) { return action.op < wanted; });
  for (auto at = first; at != actions_.end() && at->op == *place; ++at) {
    if (at->by_host == by_host) return static_cast<ActionId>(at - actions_.begin());
  }
  return kNoAction;
}

std::vector<char> OpGraph::before(ActionId later) const {
  std::vector<char> is_before(size(), 0);
  is_before[later] = 1;
  for (ActionId id = later + 1; id-- > 0;) {
    if (!is_before[id]) continue;
    for (const ActionId pred : preds(id)) is_before[pred] = 1;
  }
  return is_before;
}

}  // namespace ferry::explore
