// Copies operations, with their names and ranges, into a recording.
#include "sim/explore/recording.h"

#include <algorithm>

namespace ferry::explore {

void Recording::operator()(const StreamOp& op) {
  Entry entry{op,
              next_++,
              names_.intern(op.name),
              static_cast<std::uint32_t>(op.reads.size()),
              static_cast<std::uint32_t>(op.writes.size()),
              ranges_.size()};
  entry.op.reads = entry.op.writes = {};
  entry.op.name = {};
  ranges_.insert(ranges_.end(), op.reads.begin(), op.reads.end());
  ranges_.insert(ranges_.end(), op.writes.begin(), op.writes.end());
  entries_.push_back(entry);
}

StreamOp Recording::operator[](std::size_t i) const {
  const Entry& entry = entries_[i];
  StreamOp op = entry.op;
  const Range* ranges = ranges_.data() + entry.ranges;
  op.reads = {ranges, entry.reads};
  op.writes = {ranges + entry.reads, entry.writes};
  op.name = names_.text(entry.name);
  return op;
}

std::optional<std::size_t> Recording::find(std::uint64_t number) const {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), number,
      [](const Entry& entry, std::uint64_t wanted) { return entry.number < wanted; });
  if (found == entries_.end() || found->number != number) return std::nullopt;
  return static_cast<std::size_t>(found - entries_.begin());
}

}  // namespace ferry::explore
