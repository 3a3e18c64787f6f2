// Programs made safe: for each race that happens-before reports, the edge that was missing. So
// there is as much order as it takes and, often, no more: what random programs rarely have.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sim/check/happens_before.h"
#include "tests/sim/support/stream_program.h"

namespace ferry::test {

// (With the stricter option: it has more to report.)
inline std::vector<check::Hazard> hazards_of(const StreamProgram& program) {
  check::HappensBefore checker({.host_free_waits = true});
  program.each([&](const StreamOp& op) { checker(op); });
  return checker.hazards();
}

// Two ops that order the hazard's accesses; each under an id of its own.
inline void add_edge(StreamProgram& program, const check::Hazard& hazard, std::uint32_t id) {
  using Call = StreamProgram::Call;
  const check::HazardAccess &from = hazard.earlier, &to = hazard.later;
  const auto at = [&](std::uint64_t op) {
    return program.calls.begin() + static_cast<std::ptrdiff_t>(op);
  };
  Call after, before;
  after.op.event = before.op.event = EventId{id};
  after.op.token = before.op.token = HostToken{id};
  after.op.stream = from.stream;
  before.op.stream = to.stream;
  // The threads that issue the two accesses, or make them.
  after.op.thread = at(from.op)->op.thread;
  before.op.thread = at(to.op)->op.thread;
  after.op.kind = from.by_host ? StreamOpKind::kRelease : StreamOpKind::kRecord;
  before.op.kind = from.by_host ? StreamOpKind::kAcquire
                   : to.by_host ? StreamOpKind::kEventSync
                                : StreamOpKind::kWait;
  program.calls.insert(at(to.op), std::move(before));
  program.calls.insert(at(from.op) + 1, std::move(after));
}

// The pool is told of the earlier access before it gets the bytes back; false where it never does.
inline bool add_use(StreamProgram& program, const check::Hazard& hazard) {
  if (hazard.kind != check::HazardKind::kReuse || hazard.earlier.by_host) return false;
  for (std::size_t i = hazard.later.op; i-- > hazard.earlier.op;) {
    const StreamOp& op = program.calls[i].op;
    const bool meets =
        op.range.address < hazard.range.end() && hazard.range.address < op.range.end();
    if (op.kind != StreamOpKind::kFree || !meets) continue;
    StreamProgram::Call use;
    use.op.kind = StreamOpKind::kRecordUse;
    use.op.range = op.range;
    use.op.thread = op.thread;
    use.op.stream = hazard.earlier.stream;
    program.calls.insert(program.calls.begin() + static_cast<std::ptrdiff_t>(i), std::move(use));
    return true;
  }
  return false;
}

// (A stream's use of its own pool's block is nobody's business: then an edge is next.)
inline StreamProgram repaired(StreamProgram program) {
  for (std::uint32_t id = 100; id < 600; ++id) {
    const std::vector<check::Hazard> hazards = hazards_of(program);
    if (hazards.empty()) break;
    if (id % 2 != 0 || !add_use(program, hazards.front())) {
      add_edge(program, hazards.front(), id);
    }
    for (std::size_t i = 0; i < program.calls.size(); ++i) {
      program.calls[i].name = std::to_string(i);
    }
  }
  return program;
}

}  // namespace ferry::test
