// Implements the rules of happens_before.h, in this order: accesses, lifetimes, reports.
#include "sim/check/happens_before.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace ferry::check {
namespace {

bool is_write(HazardKind kind) {
  return kind == HazardKind::kWriteAfterRead || kind == HazardKind::kWriteAfterWrite;
}

}  // namespace

HappensBefore::HappensBefore(Options options) : options_(options), log_(options.hazards_most) {}

void HappensBefore::number_next(std::uint64_t op) {
  if (op >= std::numeric_limits<std::uint32_t>::max()) throw std::length_error("2^32 ops");
  seq_ = static_cast<std::uint32_t>(op);
}

void HappensBefore::operator()(const StreamOp& op) {
  if (seq_ == std::numeric_limits<std::uint32_t>::max()) throw std::length_error("2^32 ops");
  seq_++;
  clocks_.thread(op.thread);  // the thread exists from its first line on
  if (op.captured) return;    // it runs at the replays
  switch (op.kind) {
    case StreamOpKind::kKernel:
    case StreamOpKind::kCopy:
    case StreamOpKind::kMemset:
    case StreamOpKind::kHostFunc:
      return access_on_stream(op);
    case StreamOpKind::kHostRead:
    case StreamOpKind::kHostWrite:
      return access_on_host(op);
    case StreamOpKind::kAlloc:
      alloc(op);
      if (op.pool == PoolKind::kAsync) hand_out_in_stream(op);
      return;
    case StreamOpKind::kFree:
      if (op.pool == PoolKind::kAsync) return free_in_stream(op);
      if (options_.host_free_waits && (is_host(op.range.address) || op.pool == PoolKind::kHost)) {
        end_under_use(op, clocks_.thread(op.thread), HazardKind::kHostFree);
      } else if (options_.reuse_at_free && op.pool == PoolKind::kCaching) {
        end_under_use(op, clocks_.stream(op.stream), HazardKind::kFreeUnderUse);
      }
      return free(op);
    case StreamOpKind::kRecordUse:
      return record_use(op);
    case StreamOpKind::kRelease:
    case StreamOpKind::kAcquire:
      if (op.in_stream) clocks_.act(clocks_.issue(op.stream, op.thread), seq_);
      return clocks_.order(op);
    default:
      return clocks_.order(op);
  }
}

void HappensBefore::begin(const StreamOp& op, Actor actor) {
  if (names_.crowded()) drop_names();
  current_ = {seq_, names_.intern(op.name), actor, op.kind, op.step};
  now_ = clocks_.clock(actor);
}

void HappensBefore::drop_names() {
  names_.sweep([&](auto&& mark) {
    cells_.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, std::uint64_t, const Cell& c) {
      if (c.write.seq != 0) mark(c.write.name);
      for (const Access& read : c.reads) mark(read.name);
    });
  });
}

void HappensBefore::access(const StreamOp& op, Actor actor) {
  clocks_.act(actor, seq_);
  begin(op, actor);
  for (const Range& range : op.reads) read(range);
  writes_host_ = op.kind == StreamOpKind::kCopy && op.copy == CopyKind::kDeviceToHost;
  for (const Range& range : op.writes) write(range);
  if (!conflicts_.empty()) report_conflicts();
}

void HappensBefore::access_on_stream(const StreamOp& op) {
  const Actor stream = clocks_.issue(op.stream, op.thread);
  if (op.host_order == HostOrder::kNone) return access(op, stream);
  const Actor host = clocks_.thread(op.thread);
  if (op.host_order == HostOrder::kDone) {
    access(op, stream);
    return clocks_.host_waits(host, clocks_.clock(stream));
  }
  // The host reads the source itself, into memory of the driver. Only then does the stream get the
  // rest of the copy.
  clocks_.host_waits(host, clocks_.clock(stream));
  StreamOp half = op;
  half.writes = {};
  clocks_.act_on_host(host, seq_);
  access(half, host);
  half.reads = {};
  half.writes = op.writes;
  access(half, clocks_.issue(op.stream, op.thread));
}

void HappensBefore::access_on_host(const StreamOp& op) {
  const Actor host = clocks_.thread(op.thread);
  clocks_.act_on_host(host, seq_);
  begin(op, host);
  for (const Range& range : op.reads) read(range);
  if (op.kind == StreamOpKind::kHostRead) read(op.range);
  writes_host_ = true;
  for (const Range& range : op.writes) write(range);
  if (op.kind == StreamOpKind::kHostWrite) write(op.range);
  if (!conflicts_.empty()) report_conflicts();
}

void HappensBefore::read(Range range) {
  buffer_ = range;
  cells_.update(range.address, range.end(), [&](std::uint64_t begin, std::uint64_t end, Cell& c) {
    if (c.write.seq != 0 && !ordered(c.write)) {
      conflict(HazardKind::kReadAfterWrite, c.write, begin, end, c);
    }
    if (c.write.step == Step::kOffload) read_copy(c.write);
    for (Access& read : c.reads) {
      if (read.actor == current_.actor) {
        read = current_;
        return;
      }
    }
    c.reads.push_back(current_);
  });
}

void HappensBefore::write(Range range) {
  if (range.bytes == 0) return;
  buffer_ = range;
  Cell& cell = cells_.merge(
      range.address, range.end(), [&](std::uint64_t begin, std::uint64_t end, const Cell& c) {
        for (const Access& read : c.reads) {
          if (!ordered(read)) conflict(HazardKind::kWriteAfterRead, read, begin, end, c);
        }
        const bool alone = c.reads.empty() || c.write.kind == StreamOpKind::kAlloc;
        if (alone && c.write.seq != 0 && !ordered(c.write)) {
          conflict(HazardKind::kWriteAfterWrite, c.write, begin, end, c);
        }
      });
  cell.write = current_;
  cell.reads.clear();
}

void HappensBefore::alloc(const StreamOp& op) {
  if (op.range.bytes == 0) return;
  const bool owned = !is_host(op.range.address) && op.pool != PoolKind::kHost;
  Clocks::Place owner;
  if (owned) owner = clocks_.place(clocks_.stream(op.stream));
  Life& life = lives_.merge(op.range.address, op.range.end(),
                            [&](std::uint64_t begin, std::uint64_t end, const Life& old) {
                              if (old.done_with) cells_.erase(begin, end);
                              if (!old.done.empty()) drop_done({begin, end - begin}, old);
                            });
  life.since = seq_;
  life.owner = owner;
  life.freed = false;
  life.done_with = false;
  life.uses.clear();
  life.done.clear();
}

void HappensBefore::free(const StreamOp& op) {
  const std::uint32_t* host = clocks_.clock(clocks_.thread(op.thread));
  lives_.update(op.range.address, op.range.end(), [&](std::uint64_t, std::uint64_t, Life& life) {
    life.since = seq_;
    life.freed = true;
    life.done_with |= op.pool == PoolKind::kMalloc;
    for (const Clocks::Place use : life.uses) {
      life.done.resize(clocks_.width(), 0);
      // The pool now records an event on that stream, so it waits for all work issued there so far.
      if (clocks_.is_there(use)) {
        ClockRows::join(life.done.data(), clocks_.clock(use.actor), clocks_.width());
      }
      ClockRows::join(life.done.data(), host, clocks_.width());
    }
    life.uses.clear();
  });
}

// The allocation counts as a write of the bytes, so later uses must come after it. The last write
// of their earlier life is kept among the reads.
void HappensBefore::hand_out_in_stream(const StreamOp& op) {
  const Actor stream = clocks_.issue(op.stream, op.thread);
  clocks_.act(stream, seq_);
  begin(op, stream);
  cells_.update(op.range.address, op.range.end(), [&](std::uint64_t, std::uint64_t, Cell& c) {
    const auto same = [&](const Access& read) { return read.actor == c.write.actor; };
    if (c.write.seq != 0 && std::none_of(c.reads.begin(), c.reads.end(), same)) {
      c.reads.push_back(c.write);
    }
    c.write = current_;
  });
}

// The free waits for the streams of record_use. In reports, the free is the later access.
void HappensBefore::free_in_stream(const StreamOp& op) {
  const Range range = op.range;
  const Actor stream = clocks_.issue(op.stream, op.thread);
  clocks_.act(stream, seq_);
  begin(op, stream);
  buffer_ = range;
  freed_.assign(now_, now_ + clocks_.width());
  take_uses(range);
  now_ = freed_.data();
  lives_of(range.address, range.end(), [&](std::uint64_t from, std::uint64_t to, const Life* life) {
    const std::uint32_t since = life == nullptr ? 0 : life->since;
    const auto running = [&](const Access& access) {
      return access.seq != 0 && access.seq >= since && !ordered(access);
    };
    cells_.modify(from, to, [&](std::uint64_t begin, std::uint64_t end, Cell& c) {
      for (const Access& read : c.reads) {
        if (running(read)) conflict(HazardKind::kFreeUnderUse, read, begin, end, c);
      }
      if (running(c.write)) conflict(HazardKind::kFreeUnderUse, c.write, begin, end, c);
      std::erase_if(c.reads, running);
      if (running(c.write)) c.write = Access{};
    });
  });
  if (!conflicts_.empty()) report_conflicts();
  lives_.update(range.address, range.end(), [&](std::uint64_t, std::uint64_t, Life& life) {
    life.since = seq_;
    life.freed = true;
    life.uses.clear();
    life.done = freed_;
  });
}

// Adds to freed_ what each record_use makes the pool wait for: all work that its stream was given
// so far, or the work that its event stands for.
void HappensBefore::take_uses(Range range) {
  lives_.visit(range.address, range.end(), [&](std::uint64_t, std::uint64_t, const Life& life) {
    if (!life.freed) {
      const auto width = static_cast<std::uint32_t>(life.done.size());
      ClockRows::join(freed_.data(), life.done.data(), width);
    }
    for (const Clocks::Place use : life.uses) {
      if (!clocks_.is_there(use)) continue;
      ClockRows::join(freed_.data(), clocks_.clock(use.actor), clocks_.width());
    }
  });
}

template <class F>
void HappensBefore::lives_of(std::uint64_t begin, std::uint64_t end, F&& f) const {
  std::uint64_t at = begin;
  lives_.visit(begin, end, [&](std::uint64_t from, std::uint64_t to, const Life& life) {
    if (at < from) f(at, from, nullptr);
    f(std::max(at, from), std::min(to, end), &life);
    at = std::min(to, end);
  });
  if (at < end) f(at, end, nullptr);
}

// PyTorch records the use for the whole block, wherever the tensor lies in it.
void HappensBefore::record_use(const StreamOp& op) {
  const Range range = op.range;
  const Clocks::Place stream = clocks_.place(clocks_.stream(op.stream));
  const std::uint32_t* const recorded = clocks_.clock(op.event);
  const auto add = [&](std::uint64_t, std::uint64_t, Life& life) {
    if (op.until_event) {
      if (recorded == nullptr) return;
      life.done.resize(clocks_.width(), 0);
      return ClockRows::join(life.done.data(), recorded, clocks_.width());
    }
    if (stream == life.owner) return;
    if (std::find(life.uses.begin(), life.uses.end(), stream) == life.uses.end()) {
      life.uses.push_back(stream);
    }
  };
  if (lives_.find(range.address) != nullptr) {
    lives_.touch(range.address, range.end(), add);
  } else {
    lives_.update(range.address, range.end(), add);
  }
}

// Drops accesses that the pool has waited for, and those that the freeing host thread knew as done.
void HappensBefore::drop_done(Range range, const Life& life) {
  const auto is_done = [&](const Access& access) {
    return access.actor < life.done.size() && access.seq <= life.done[access.actor];
  };
  cells_.modify(range.address, range.end(), [&](std::uint64_t, std::uint64_t, Cell& c) {
    std::erase_if(c.reads, is_done);
    if (is_done(c.write)) c.write = Access{};
  });
}

void HappensBefore::forget(Range range) {
  cells_.erase(range.address, range.end());
  lives_.erase(range.address, range.end());
}

// Checks that what this host thread issues next on `actor` comes after all uses of the freed bytes.
// A record_use makes the pool wait. In reports the free is the later access, because the next owner
// of the bytes is not to blame.
void HappensBefore::end_under_use(const StreamOp& op, Actor actor, HazardKind kind) {
  begin(op, actor);
  buffer_ = op.range;
  freed_.assign(now_, now_ + clocks_.width());
  ClockRows::join(freed_.data(), clocks_.clock(clocks_.thread(op.thread)), clocks_.width());
  take_uses(op.range);
  now_ = freed_.data();
  const auto running = [&](const Access& access) { return access.seq != 0 && !ordered(access); };
  cells_.modify(op.range.address, op.range.end(),
                [&](std::uint64_t begin, std::uint64_t end, Cell& c) {
                  for (const Access& read : c.reads) {
                    if (running(read)) conflict(kind, read, begin, end, c);
                  }
                  if (running(c.write)) conflict(kind, c.write, begin, end, c);
                  std::erase_if(c.reads, running);
                  if (running(c.write)) c.write = Access{};
                });
  if (!conflicts_.empty()) report_conflicts();
}

// Records a conflict for the bytes [begin, end), which may have had several lives side by side.
void HappensBefore::conflict(HazardKind kind, const Access& earlier, std::uint64_t begin,
                             std::uint64_t end, const Cell& cell) {
  if (earlier.seq == seq_) return;
  const bool under_copy = options_.foreign && writes_host_ && earlier.kind == StreamOpKind::kCopy;
  const bool at_free = kind == HazardKind::kHostFree || kind == HazardKind::kFreeUnderUse;
  lives_of(begin, end, [&](std::uint64_t from, std::uint64_t to, const Life* life) {
    const std::uint32_t since = life == nullptr ? 0 : life->since;
    const bool same = life != nullptr && life->owner == clocks_.place(current_.actor);
    HazardKind what = kind;
    if (kind == HazardKind::kReadAfterWrite) {
      for (const Access& read : cell.reads) {
        if (read.actor == current_.actor && read.seq >= since) return;  // it was reported then
      }
    }
    if (!at_free && earlier.kind == StreamOpKind::kAlloc) {
      what = HazardKind::kBeforeAlloc;
    } else if (!at_free && earlier.seq < since) {
      what = HazardKind::kReuse;
    } else if (is_write(kind) && (is_host(begin) || under_copy)) {
      what = HazardKind::kHostRewrite;
    }
    conflicts_.push_back({what, same, earlier, buffer_, from, to});
  });
}

// Makes one report for each earlier op and kind, on however many pieces of memory they conflict. An
// op that lacks one wait and reads and then writes makes one mistake, not two. (In a foreign log
// each buffer is reported, so there the write is reported too.)
void HappensBefore::report_conflicts() {
  const auto buffer = [&](const Conflict& c) {
    return options_.foreign ? std::pair(c.buffer.address, c.buffer.bytes)
                            : std::pair(std::uint64_t{0}, std::uint64_t{0});
  };
  const auto mistake = [&](const Conflict& c) {
    return std::tuple(c.earlier.seq, c.kind, buffer(c));
  };
  // In a foreign log, conflicts stay in the order in which the op names its buffers.
  std::stable_sort(conflicts_.begin(), conflicts_.end(), [&](const Conflict& a, const Conflict& b) {
    const auto place = [&](const Conflict& c) { return options_.foreign ? 0 : c.begin; };
    return std::tuple(a.earlier.seq, a.kind, place(a)) <
           std::tuple(b.earlier.seq, b.kind, place(b));
  });
  std::uint32_t read_from = 0;
  for (std::size_t i = 0; i < conflicts_.size();) {
    const Conflict first = conflicts_[i];
    std::uint64_t end = first.end;
    for (; i < conflicts_.size() && mistake(conflicts_[i]) == mistake(first); ++i) {
      if (conflicts_[i].begin <= end) end = std::max(end, conflicts_[i].end);
    }
    if (first.kind == HazardKind::kReadAfterWrite) read_from = first.earlier.seq;
    if (first.kind == HazardKind::kWriteAfterWrite && first.earlier.seq == read_from &&
        !options_.foreign) {
      continue;
    }
    Hazard hazard;
    hazard.kind = first.kind;
    hazard.missing = missing_step(first.kind, first.earlier.step, current_.step,
                                  is_host(first.begin), first.same_pool);
    hazard.earlier = describe(first.earlier);
    hazard.later = describe(current_);
    hazard.range = {first.begin, end - first.begin};
    hazard.buffer = first.buffer;
    if (!waits(hazard, first.earlier)) log_.report(std::move(hazard));
  }
  conflicts_.clear();
}

// Holds back a hazard that does no harm yet, and returns true: a write of the program that tears a
// copy to the host matters only if the copy is read.
bool HappensBefore::waits(const Hazard& hazard, const Access& earlier) {
  if (hazard.kind != HazardKind::kWriteAfterRead || earlier.step != Step::kOffload ||
      current_.step != Step::kUser || read_copies_.contains(earlier.seq)) {
    return false;
  }
  torn_copies_[earlier.seq].push_back(hazard);
  return true;
}

void HappensBefore::read_copy(const Access& copy) {
  if (!read_copies_.insert(copy.seq).second) return;
  const auto torn = torn_copies_.find(copy.seq);
  if (torn == torn_copies_.end()) return;
  for (Hazard& hazard : torn->second) log_.report(std::move(hazard));
  torn_copies_.erase(torn);
}

std::optional<HazardAccess> HappensBefore::pending(Range range, HostThread thread) {
  const std::uint32_t* const known = clocks_.clock(clocks_.thread(thread));
  std::optional<HazardAccess> found;
  const auto see = [&](const Access& access) {
    const bool pends = access.seq > known[access.actor] && !clocks_.is_thread(access.actor);
    if (pends && !found) found = describe(access);
  };
  cells_.visit(range.address, range.end(), [&](std::uint64_t, std::uint64_t, const Cell& cell) {
    see(cell.write);
    std::for_each(cell.reads.begin(), cell.reads.end(), see);
  });
  return found;
}

HazardAccess HappensBefore::describe(const Access& access) const {
  const bool host = clocks_.is_thread(access.actor);
  HazardAccess described{access.seq - 1, access.kind, {},
                         host,           access.step, names_.text(access.name)};
  if (host) {
    described.thread = clocks_.thread_of(access.actor);
  } else {
    described.stream = clocks_.stream_of(access.actor);
  }
  return described;
}

}  // namespace ferry::check
