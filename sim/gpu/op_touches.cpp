#include "sim/gpu/op_touches.h"

#include <iterator>

#include "sim/gpu/device_pool_sizes.h"

namespace ferry::sim {

using choices::Access;
using choices::Touched;

namespace {

// Combines two small numbers.
constexpr std::uint64_t pair(std::uint64_t high, std::uint64_t low) { return (high << 32) | low; }

}  // namespace

// Returns the pool of an address. The host's addresses are above those of all devices.
std::uint64_t OpTouches::pool_of(std::uint64_t address) { return address >> kDeviceAddressBits; }

void OpTouches::allocated(const StreamOp& op) {
  const std::uint64_t pool = pool_of(op.range.address);
  const std::uint64_t number = pair(pool, counts_[pool]++);
  storages_[op.range.address] = {op.range.end(), number};
  choices_.touch(Touched::kPool, pool, Access::kWrite);
  choices_.touch(Touched::kStorage, number, Access::kWrite);
}

void OpTouches::touch_bytes(Range range, Access access) {
  auto found = storages_.upper_bound(range.address);
  if (found == storages_.begin()) return;
  found = std::prev(found);
  if (range.address < found->second.end) {
    choices_.touch(Touched::kStorage, found->second.number, access);
  }
}

void OpTouches::operator()(const StreamOp& op) {
  switch (op.kind) {
    case StreamOpKind::kAlloc:
      return allocated(op);
    case StreamOpKind::kFree:
      choices_.touch(Touched::kPool, pool_of(op.range.address), Access::kWrite);
      return touch_bytes(op.range, Access::kWrite);
    case StreamOpKind::kRecordUse:
      return touch_bytes(op.range, Access::kWrite);
    case StreamOpKind::kRecord: {
      const std::uint64_t number =
          pair(static_cast<std::uint64_t>(op.stream), records_[op.stream]++);
      last_record_[op.event] = number;
      choices_.touch(Touched::kRecord, number, Access::kWrite);
      break;
    }
    case StreamOpKind::kWait:
      if (const auto record = last_record_.find(op.event); record != last_record_.end()) {
        choices_.touch(Touched::kRecord, record->second, Access::kRead);
      }
      break;
    default:
      break;
  }
  choices_.touch(Touched::kStream, static_cast<std::uint64_t>(op.stream), Access::kWrite);
  for (const Range range : op.reads) touch_bytes(range, Access::kRead);
  for (const Range range : op.writes) touch_bytes(range, Access::kWrite);
}

}  // namespace ferry::sim
