// The queue against a std::deque: what was pushed comes out, whatever lies between two operations.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <deque>

#include "sim/gpu/op_queue.h"

namespace ferry::sim {
namespace {

bool same(const QueuedOp& a, const QueuedOp& b) {
  return a.tag == b.tag && a.not_before == b.not_before && a.value == b.value;
}

QueuedOp op(std::uint64_t index, std::int64_t not_before, std::int64_t value) {
  return {index << QueuedOp::kKindBits | index % 6, not_before, value};
}

RC_GTEST_PROP(OpQueueProp, IsAFifoOfWhatWasPushed, ()) {
  const auto size = rc::gen::element<std::int64_t>(0, 1, 1'000, 65'535, 65'536,
                                                   std::int64_t{1} << 33, std::int64_t{1} << 60);
  ChunkStore store;
  OpQueue queue;
  std::deque<QueuedOp> model;
  std::uint64_t index = 0;
  const int steps = *rc::gen::inRange(0, 1'000);
  const int pops = *rc::gen::inRange(0, 100);  // hundredths
  for (int i = 0; i < steps; ++i) {
    if (!model.empty() && *rc::gen::inRange(0, 100) < pops) {
      queue.pop(store);
      model.pop_front();
    } else {
      index += static_cast<std::uint64_t>(*size % 100'000 + 1);
      model.push_back(op(index, *size, *size));
      if (!queue.empty() && queue.try_push(model.back())) continue;
      queue.push(store, model.back());
    }
    RC_ASSERT(queue.empty() == model.empty());
    if (!model.empty()) RC_ASSERT(same(queue.front(), model.front()));
  }
}

}  // namespace
}  // namespace ferry::sim
