// Implements lifetime.h: looks up the allocations under each range that an op names, and reports
// what does not fit.
#include "sim/check/lifetime.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ferry::check {
namespace {

constexpr std::size_t kDestroyedMost = 1u << 16;

bool by_host(const StreamOp& op) {
  switch (op.kind) {
    case StreamOpKind::kHostRead:
    case StreamOpKind::kHostWrite:
    case StreamOpKind::kEventSync:
    case StreamOpKind::kDeviceSync:
    case StreamOpKind::kEventDestroy:
    case StreamOpKind::kHostView:
    case StreamOpKind::kHostViewEnd:
      return true;
    case StreamOpKind::kRelease:
    case StreamOpKind::kAcquire:
      return !op.in_stream;
    case StreamOpKind::kAlloc:
    case StreamOpKind::kFree:
      return is_host(op.range.address) || op.pool == PoolKind::kHost;
    default:
      return false;
  }
}

// Allocations and frees of the stream-ordered allocator are work of their stream. Those of other
// pools only name a stream.
bool names_stream(const StreamOp& op) {
  if (op.kind == StreamOpKind::kAlloc || op.kind == StreamOpKind::kFree) {
    return op.pool == PoolKind::kAsync;
  }
  return !by_host(op);
}

}  // namespace

void Lifetime::operator()(const StreamOp& op) {
  if (names_.crowded()) drop_names();
  if (!destroyed_.empty()) use_stream(op);
  switch (op.kind) {
    case StreamOpKind::kKernel:
    case StreamOpKind::kCopy:
    case StreamOpKind::kMemset:
    case StreamOpKind::kHostFunc:
      use(op);
      break;
    case StreamOpKind::kHostRead:
    case StreamOpKind::kHostWrite:
      use(op);
      use(op, op.range);
      break;
    case StreamOpKind::kRecordUse:
      use(op, op.range);
      break;
    case StreamOpKind::kAlloc:
      alloc(op);
      break;
    case StreamOpKind::kFree:
      free(op);
      break;
    case StreamOpKind::kStreamDestroy:
      destroyed_.try_emplace(static_cast<std::uint32_t>(op.stream), mark(op));
      if (destroyed_.size() > 2 * kDestroyedMost) forget_oldest_destroyed();
      break;
    default:
      break;
  }
  op_++;
}

void Lifetime::forget_oldest_destroyed() {
  std::vector<std::uint64_t> when;
  for (const auto& each : destroyed_) when.push_back(each.second.op);
  const auto oldest = when.begin() + static_cast<std::ptrdiff_t>(when.size() - kDestroyedMost);
  std::nth_element(when.begin(), oldest, when.end());
  std::erase_if(destroyed_, [&](const auto& each) { return each.second.op < *oldest; });
}

void Lifetime::use_stream(const StreamOp& op) {
  const auto gone = destroyed_.find(static_cast<std::uint32_t>(op.stream));
  if (gone == destroyed_.end()) return;
  if (op.kind == StreamOpKind::kStream) {
    destroyed_.erase(gone);
  } else if (names_stream(op)) {
    report(HazardKind::kDestroyedStream, &gone->second, op, {}, {});
  }
}

Lifetime::Found Lifetime::look(const Blocks& blocks, Range range) const {
  Found found;
  std::uint64_t known = range.address;
  blocks.visit(range.address, range.end(),
               [&](std::uint64_t begin, std::uint64_t end, const Allocation& block) {
                 if (begin > known && found.gap.bytes == 0) found.gap = {known, begin - known};
                 known = end;
                 found.any = true;
                 if (block.live) found.live_block = &block;
                 if (block.live || block.graph_pool != 0 || found.freed.bytes != 0) return;
                 const std::uint64_t from = std::max(begin, range.address);
                 found.freed = {from, std::min(end, range.end()) - from};
                 found.free_block = &block;
               });
  if (known < range.end() && found.gap.bytes == 0) found.gap = {known, range.end() - known};
  return found;
}

void Lifetime::use(const StreamOp& op) {
  if (op.graph != GraphId{} && !op.captured) return replay(op);
  for (const Range& range : op.reads) use(op, range);
  for (const Range& range : op.writes) use(op, range);
  if (op.captured) return capture(op);
  if (overwritten_.size() == 0) return;
  for (const Range& range : op.reads) read(op, range);
  for (const Range& range : op.writes) write(range);
}

// Makes at most one report of each kind for a range, about its first bytes that are not allocated.
void Lifetime::use(const StreamOp& op, Range range) {
  if (range.bytes == 0) return;
  const Allocation* whole = blocks_.covering(range.address, range.end());
  if (whole != nullptr && whole->live) return;  // nearly always
  Found found = look(blocks_, range);
  if (!found.any && beneath_.size() != 0) found = look(beneath_, range);
  if (found.freed.bytes != 0) {
    report(HazardKind::kUseAfterFree, &found.free_block->mark, op, found.freed, range);
  }
  if (found.gap.bytes == 0) return;
  if (!options_.allow_outside) {
    report(HazardKind::kOutside, nullptr, op, found.gap, range);
  } else if (options_.report_overrun && found.live_block != nullptr) {
    report(HazardKind::kOutside, &found.live_block->mark, op, found.gap, range);
  }
}

void Lifetime::alloc(const StreamOp& op) {
  const Range range = op.range;
  if (range.bytes == 0) return;
  write(range);
  if (op.pool != PoolKind::kCaching) blocks_.erase(range.address, range.end());
  Allocation live;
  Range shared;
  Allocation& block =
      blocks_of(op).merge(range.address, range.end(),
                          [&](std::uint64_t begin, std::uint64_t end, const Allocation& old) {
                            if (!old.live || live.live) return;
                            live = old;
                            shared = {begin, end - begin};
                          });
  block = {true, mark(op), range, op.graph_pool};
  if (op.graph != GraphId{}) pool_of_[static_cast<std::uint32_t>(op.graph)] = op.graph_pool;
  if (live.live) report(HazardKind::kDoubleAllocate, &live.mark, op, shared, range);
}

void Lifetime::free(const StreamOp& op) {
  const Range range = op.range;
  if (range.bytes == 0) return;
  Blocks& blocks = blocks_of(op);
  const Allocation* found = blocks.find(range.address);
  if (found == nullptr) {
    if (!options_.allow_outside) report(HazardKind::kUnknownFree, nullptr, op, range, range);
    return;
  }
  write(range);
  if (!found->live) return report(HazardKind::kDoubleFree, &found->mark, op, range, range);
  if (!(found->whole == range))
    return report(HazardKind::kUnknownFree, &found->mark, op, range, range);
  // A part may have been handed out twice, which was reported. That part stays with its new owner.
  const std::uint64_t alloc_op = found->mark.op;
  blocks.touch(range.address, range.end(), [&](std::uint64_t, std::uint64_t, Allocation& block) {
    if (block.live && block.mark.op == alloc_op) {
      block.live = false;
      block.mark = mark(op);
    }
  });
  if (op.pool != PoolKind::kCaching) blocks_.erase(range.address, range.end());
}

void Lifetime::expect_live(Range range) { expected_.replace(range.address, range.end(), 1); }

void Lifetime::finish() {
  finish(beneath_);
  finish(blocks_);
}

void Lifetime::finish(const Blocks& blocks) {
  blocks.visit(
      0, ~std::uint64_t{0}, [&](std::uint64_t begin, std::uint64_t end, const Allocation& block) {
        bool wanted = false;
        expected_.visit(begin, end, [&](std::uint64_t, std::uint64_t, char) { wanted = true; });
        if (!block.live || wanted) return;
        Hazard hazard;
        hazard.kind = HazardKind::kLeak;
        hazard.earlier = hazard.later = describe(block.mark);
        hazard.range = {begin, end - begin};
        hazard.buffer = block.whole;
        log_.report(std::move(hazard));
      });
}

void Lifetime::report(HazardKind kind, const Mark* earlier, const StreamOp& op, Range range,
                      Range buffer) {
  Hazard hazard;
  hazard.kind = kind;
  if (earlier != nullptr) hazard.earlier = describe(*earlier);
  hazard.later = describe(mark(op));
  hazard.range = range;
  hazard.buffer = buffer;
  log_.report(std::move(hazard));
}

void Lifetime::drop_names() {
  names_.sweep([&](auto&& mark) {
    for (const Blocks* blocks : {&blocks_, &beneath_}) {
      blocks->visit(
          0, ~std::uint64_t{0},
          [&](std::uint64_t, std::uint64_t, const Allocation& block) { mark(block.mark.name); });
    }
    for (const auto& stream : destroyed_) mark(stream.second.name);
    overwritten_.visit(0, ~std::uint64_t{0},
                       [&](std::uint64_t, std::uint64_t, const Mark& by) { mark(by.name); });
  });
}

Lifetime::Mark Lifetime::mark(const StreamOp& op) {
  return {op_, op.stream, names_.intern(op.name), op.kind, op.step, by_host(op), op.thread};
}

HazardAccess Lifetime::describe(const Mark& mark) const {
  return {mark.op,    mark.kind, mark.stream, mark.by_host, mark.step, names_.text(mark.name),
          mark.thread};
}

}  // namespace ferry::check
