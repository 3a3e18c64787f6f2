// The rules of lifetime.h.
#include "sim/checkers/lifetime.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ferry::sim {
namespace {

bool by_host(const StreamOp& op) {
  const bool memory = op.kind == StreamOpKind::kAlloc || op.kind == StreamOpKind::kFree;
  return op.kind == StreamOpKind::kHostRead || op.kind == StreamOpKind::kHostWrite ||
         (memory && is_host(op.range.address));
}

}  // namespace

void Lifetime::operator()(const StreamOp& op) {
  switch (op.kind) {
    case StreamOpKind::kKernel:
    case StreamOpKind::kCopy:
      for (const Range& range : op.reads) use(op, range);
      for (const Range& range : op.writes) use(op, range);
      break;
    case StreamOpKind::kHostRead:
    case StreamOpKind::kHostWrite:
      for (const Range& range : op.reads) use(op, range);
      for (const Range& range : op.writes) use(op, range);
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
    case StreamOpKind::kRecord:
    case StreamOpKind::kWait:
    case StreamOpKind::kEventSync:
    case StreamOpKind::kStreamSync:
      break;
  }
  op_++;
}

// At most one report of each kind for a range: its first bytes that are not allocated.
void Lifetime::use(const StreamOp& op, Range range) {
  if (range.bytes == 0) return;
  std::uint64_t known = range.address;
  Range gap;
  Range freed;
  Block free_block;
  blocks_.visit(range.address, range.end(),
                [&](std::uint64_t begin, std::uint64_t end, const Block& block) {
                  if (begin > known && gap.bytes == 0) gap = {known, begin - known};
                  known = end;
                  if (block.live || freed.bytes != 0) return;
                  const std::uint64_t from = std::max(begin, range.address);
                  freed = {from, std::min(end, range.end()) - from};
                  free_block = block;
                });
  if (known < range.end() && gap.bytes == 0) gap = {known, range.end() - known};
  if (freed.bytes != 0) report(HazardKind::kUseAfterFree, &free_block, op, freed);
  if (gap.bytes != 0 && !options_.allow_outside) {
    report(HazardKind::kOutside, nullptr, op, gap);
  }
}

void Lifetime::alloc(const StreamOp& op) {
  const Range range = op.range;
  if (range.bytes == 0) return;
  Block live;
  Range shared;
  Block& block = blocks_.merge(range.address, range.end(),
                               [&](std::uint64_t begin, std::uint64_t end, const Block& old) {
                                 if (!old.live || live.live) return;
                                 live = old;
                                 shared = {begin, end - begin};
                               });
  block = {true, mark(op), range};
  if (live.live) report(HazardKind::kDoubleAllocate, &live, op, shared);
}

void Lifetime::free(const StreamOp& op) {
  const Range range = op.range;
  if (range.bytes == 0) return;
  const Block* found = blocks_.find(range.address);
  if (found == nullptr) {
    if (!options_.allow_outside) report(HazardKind::kUnknownFree, nullptr, op, range);
    return;
  }
  if (!found->live) return report(HazardKind::kDoubleFree, found, op, range);
  if (!(found->whole == range)) return report(HazardKind::kUnknownFree, found, op, range);
  // A part may have been handed out a second time, which was reported: it stays with its owner.
  const std::uint64_t alloc_op = found->mark.op;
  blocks_.touch(range.address, range.end(), [&](std::uint64_t, std::uint64_t, Block& block) {
    if (block.live && block.mark.op == alloc_op) {
      block.live = false;
      block.mark = mark(op);
    }
  });
}

void Lifetime::expect_live(Range range) { expected_.replace(range.address, range.end(), 1); }

void Lifetime::finish() {
  blocks_.visit(
      0, ~std::uint64_t{0}, [&](std::uint64_t begin, std::uint64_t end, const Block& block) {
        bool wanted = false;
        expected_.visit(begin, end, [&](std::uint64_t, std::uint64_t, char) { wanted = true; });
        if (!block.live || wanted) return;
        Hazard hazard;
        hazard.kind = HazardKind::kLeak;
        hazard.earlier = hazard.later = describe(block.mark);
        hazard.range = {begin, end - begin};
        log_.report(std::move(hazard));
      });
}

void Lifetime::report(HazardKind kind, const Block* earlier, const StreamOp& op, Range range) {
  Hazard hazard;
  hazard.kind = kind;
  if (earlier != nullptr) hazard.earlier = describe(earlier->mark);
  hazard.later = {op_, op.kind, op.stream, by_host(op), op.step, std::string(op.name)};
  hazard.range = range;
  log_.report(std::move(hazard));
}

Lifetime::Mark Lifetime::mark(const StreamOp& op) {
  return {op_, op.stream, names_.intern(op.name), op.kind, op.step, by_host(op)};
}

HazardAccess Lifetime::describe(const Mark& mark) const {
  return {mark.op, mark.kind, mark.stream, mark.by_host, mark.step, names_.text(mark.name)};
}

}  // namespace ferry::sim
