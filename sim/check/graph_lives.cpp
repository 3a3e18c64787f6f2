// The lives of bytes in CUDA graphs (lifetime.h).
//
// A graph's nodes hold addresses. A capture notes which allocation each address was part of, and
// its pool, if it was made in a capture. A replay compares that with what the bytes are by then:
//
//   at the capture          at the replay
//   a block from outside    the same block; else it was freed, and the node uses what is there now
//   a block of the pool     the same block, or free bytes; else it is a living block of the pool,
//                           such as another graph's output: a write is kept in mind until somebody
//                           reads the bytes as that block, or writes or frees them
//
// Bytes that no allocation of the log covers are not judged.
#include <algorithm>

#include "sim/check/lifetime.h"

namespace ferry::check {
namespace {

std::uint64_t key(const StreamOp& op) {
  return static_cast<std::uint64_t>(op.graph) << 32 | op.node;
}

}  // namespace

void Lifetime::capture(const StreamOp& op) {
  Node& node = nodes_[key(op)] = {};
  const auto note = [&](Range range, std::vector<Captured>& parts) {
    const Blocks& level =
        blocks_.covering(range.address, range.end()) != nullptr || beneath_.size() == 0 ? blocks_
                                                                                        : beneath_;
    level.visit(range.address, range.end(),
                [&](std::uint64_t begin, std::uint64_t end, const Allocation& block) {
                  if (!block.live) return;
                  begin = std::max(begin, range.address);
                  end = std::min(end, range.end());
                  parts.push_back({{begin, end - begin}, block.mark.op, block.graph_pool});
                });
  };
  for (const Range& range : op.reads) note(range, node.reads);
  for (const Range& range : op.writes) note(range, node.writes);
}

void Lifetime::replay(const StreamOp& op) {
  const auto node = nodes_.find(key(op));
  if (node == nodes_.end()) return;
  for (const Captured& part : node->second.reads) replay(op, part, false);
  for (const Captured& part : node->second.writes) replay(op, part, true);
}

// A graph that allocated nothing may use any graph's pool, as far as the log tells.
bool Lifetime::is_own(GraphId graph, const Captured& part) const {
  const auto pool = pool_of_.find(static_cast<std::uint32_t>(graph));
  return part.graph_pool != 0 && (pool == pool_of_.end() || pool->second == part.graph_pool);
}

void Lifetime::replay(const StreamOp& op, const Captured& part, bool writes) {
  const bool own = is_own(op.graph, part);
  const Allocation* gone = nullptr;  // what is there instead of a block from outside
  Range gone_bytes;
  std::vector<Range> same, others;
  const auto see = [&](std::uint64_t begin, std::uint64_t end, const Allocation& block) {
    begin = std::max(begin, part.range.address);
    end = std::min(end, part.range.end());
    if (block.live && block.mark.op == part.alloc_op) {
      same.push_back({begin, end - begin});
    } else if (!own) {
      if (gone == nullptr) gone_bytes = {begin, end - begin};
      if (gone == nullptr) gone = &block;
    } else if (block.live) {
      others.push_back({begin, end - begin});
    }
  };
  const Blocks* level = &blocks_;
  if (blocks_.find(part.range.address) == nullptr) level = &beneath_;
  level->visit(part.range.address, part.range.end(), see);
  if (gone != nullptr) {
    report(HazardKind::kReplayAfterFree, &gone->mark, op, gone_bytes, part.range);
  }
  for (const Range& range : same) writes ? write(range) : read(op, range);
  if (!writes) return;
  for (const Range& range : others) overwritten_.replace(range.address, range.end(), mark(op));
}

// The bytes are no more what the reader takes them for.
void Lifetime::read(const StreamOp& op, Range range) {
  if (range.bytes == 0) return;
  const Mark* by = nullptr;
  Range bytes;
  overwritten_.visit(range.address, range.end(),
                     [&](std::uint64_t begin, std::uint64_t end, const Mark& mark) {
                       if (by != nullptr) return;
                       by = &mark;
                       begin = std::max(begin, range.address);
                       bytes = {begin, std::min(end, range.end()) - begin};
                     });
  if (by != nullptr) report(HazardKind::kOverwritten, by, op, bytes, range);
}

}  // namespace ferry::check
