#include "verify/oracles/lifespans.h"

#include <algorithm>
#include <iterator>

namespace ferry::verify {

void Lifespans::operator()(const StreamOp& op) {
  if (op.kind == StreamOpKind::kAlloc && op.pool == PoolKind::kCaching) {
    alive_[op.range.address] = {.tags = {}, .again = depth_ > 0};
  } else if (op.kind == StreamOpKind::kFree) {
    const auto block = alive_.find(op.range.address);
    if (block == alive_.end()) return;
    for (const std::uint64_t tag : block->second.tags) gone_[tag] = nodes_;
    alive_.erase(block);
  } else if (op.kind == StreamOpKind::kKernel) {
    if (depth_ == 0) forward_names_.try_emplace(op.tag, op.name);
    for (const Range& range : op.writes) write(op, range);
  }
}

void Lifespans::write(const StreamOp& op, const Range& range) {
  const auto after = alive_.upper_bound(range.address);
  if (after == alive_.begin()) return;
  std::prev(after)->second.tags.push_back(op.tag);
  gone_.erase(op.tag);
}

void Lifespans::task_ended() noexcept {
  if (--depth_ == 0) next();
}

// Called when the next node begins, or a task ends.
void Lifespans::next() {
  compare();
  ++nodes_;
}

void Lifespans::compare() {
  if (!kept_) return;
  for (const auto& [address, block] : alive_) {
    if (!block.again) continue;
    for (const std::uint64_t tag : block.tags) {
      const auto name = kept_->forward_names_.find(tag);
      const auto gone = kept_->gone_.find(tag);
      if (name == kept_->forward_names_.end() || gone == kept_->gone_.end()) continue;
      if (gone->second <= nodes_)
        complaint_ = "the recomputed output of " + name->second + " is no longer needed";
    }
  }
}

}  // namespace ferry::verify
