#include "verify/oracles/moves.h"

#include <algorithm>

namespace ferry::verify {
namespace {

bool overlap(const Range& a, const Range& b) { return a.address < b.end() && b.address < a.end(); }

}  // namespace

MoveWatch::MoveWatch(const Program& program) {
  for (const Global& global : program.globals) {
    if (global.alias == kNoSlot) may_move_.push_back(global.kind == GlobalKind::kInput);
  }
}

void MoveWatch::operator()(const StreamOp& op) {
  if (op.kind == StreamOpKind::kAlloc && globals_seen_ < may_move_.size()) {
    if (!may_move_[globals_seen_++]) globals_.push_back(op.range);
  }
  if (op.kind == StreamOpKind::kFree) {
    forget(op.range);
    std::erase_if(globals_, [&](const Range& global) { return overlap(global, op.range); });
  }
  if (op.kind != StreamOpKind::kKernel && op.kind != StreamOpKind::kCopy) return;
  if (op.name == "move") globals_.push_back(op.writes[0]);
  if (op.step == Step::kOffload) {
    for (const Range& global : globals_) {
      if (overlap(global, op.reads[0])) complaint_ = "a parameter or a buffer moved";
    }
    for (const Copy& copy : copies_) {
      if (copy.from == op.reads[0]) complaint_ = "the same bytes moved twice";
    }
    copies_.push_back({op.reads[0], op.writes[0]});
    return;
  }
  for (const Range& range : op.writes) forget(range);
}

// Called when the range is written or freed: a copy from it or to it is then no longer valid.
void MoveWatch::forget(const Range& range) {
  std::erase_if(copies_, [&](const Copy& copy) {
    return overlap(copy.from, range) || overlap(copy.to, range);
  });
}

}  // namespace ferry::verify
