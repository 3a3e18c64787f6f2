#include "verify/oracles/lives.h"

#include <iterator>
#include <variant>
#include <vector>

namespace ferry::verify {

Lives::Lives(const Program& program) {
  std::vector<bool> body(program.codes.size());  // is it the body of a node?
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      if (const auto* node = std::get_if<MakeNode>(&statement.action)) body[node->body] = true;
    }
  }
  for (std::size_t code = 0; code < program.codes.size(); ++code) {
    if (body[code]) continue;
    for (const Statement& statement : program.codes[code].statements) {
      if (const auto* op = std::get_if<Op>(&statement.action)) ops_.insert(op->name);
    }
  }
}

void Lives::operator()(const StreamOp& op) {
  if (op.kind == StreamOpKind::kFree) alive_.erase(op.range.address);
  if (depth_ == 0) return;
  if (op.kind == StreamOpKind::kAlloc && op.pool == PoolKind::kCaching) {
    alive_[op.range.address].clear();
  }
  if (op.kind != StreamOpKind::kKernel || !ops_.contains(op.name)) return;
  for (const Range& written : op.writes) {
    const auto after = alive_.upper_bound(written.address);
    if (after != alive_.begin()) std::prev(after)->second = op.name;
  }
}

void Lives::task_ended() noexcept {
  if (--depth_ > 0) return;
  for (const auto& [address, name] : alive_) {
    if (!name.empty()) complaint_ = "the recomputed output of " + name + " outlives its backward";
  }
  alive_.clear();
}

}  // namespace ferry::verify
