#include "vgpu/runtime/queues.h"

#include <memory>
#include <utility>

namespace ferry::vgpu {

void Queues::enqueue(Stream& stream, Work work) {
  schedule_.choose_tempo(stream);
  const bool joins = static_cast<bool>(work.body);
  if (joins) {
    join_blocking(stream, Side::kBefore);
    time_.issue(stream.id, stream.device, work.cost, work.name);
  }
  schedule_.push(stream, std::move(work));
  if (joins) join_blocking(stream, Side::kAfter);
  schedule_.run_eager();
}

void Queues::sleep(Stream& stream, std::int64_t microseconds) {
  enqueue(stream, {.body = [] {},
                   .cost = Sleep{1000 * microseconds},
                   .name = "sleep",
                   .sleep_us = microseconds});
}

SnapshotRef Queues::record(Stream& stream) {
  const auto snapshot = std::make_shared<Snapshot>(stream, time_.clock());
  enqueue(stream, {.fulfil = snapshot});
  return snapshot;
}

void Queues::wait(Stream& stream, const SnapshotRef& snapshot) {
  snapshot->hold_up(stream);
  enqueue(stream, {.wait_for = snapshot});
}

void Queues::order(StreamId earlier, Stream& later) {
  Stream* const found = streams_.find(earlier);
  if (found == nullptr) return;
  order(*found, later);
  if (streams_.is_gone(*found)) schedule_.finish(*found);
}

void Queues::order(Stream& earlier, Stream& later) {
  StreamOp op;
  op.kind = StreamOpKind::kRecord;
  op.stream = earlier.id;
  op.event = events_.take_id();
  log_.tell(op);
  op.kind = StreamOpKind::kWait;
  op.stream = later.id;
  log_.tell(op);
  const auto snapshot = std::make_shared<Snapshot>(earlier, time_.clock());
  snapshot->hold_up(later);
  schedule_.push(earlier, {.fulfil = snapshot});
  schedule_.push(later, {.wait_for = snapshot});
}

void Queues::join_blocking(Stream& stream, Side side) {
  if (!streams_.is_legacy(stream)) return;
  streams_.for_each_of(stream.device, [&](Stream& other) {
    if (&other == &stream || !other.blocking) return;
    if (side == Side::kBefore) {
      order(other, stream);
    } else {
      order(stream, other);
    }
  });
}

}  // namespace ferry::vgpu
