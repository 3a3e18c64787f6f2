#include "vgpu/python/run_log.h"

#include <iterator>
#include <span>

#include "vgpu/python/places.h"

namespace ferry::vgpu {
namespace {

constexpr std::uint64_t kHostBase = std::uint64_t{1} << 60;    // the same as the runtime's
constexpr std::uint64_t kLoggedHost = std::uint64_t{1} << 57;  // page-locked memory
constexpr std::uint64_t kPageable = std::uint64_t{1} << 58;    // all other host memory
constexpr std::uint32_t kLegacyStreams = 8;                    // the first ids, one for each device

std::pair<std::uint64_t, std::uint64_t> key(Range range) { return {range.address, range.bytes}; }

}  // namespace

RunLog::RunLog(const std::string& path) : path_(path), file_(path), pageable_(kPageable) {}

RunLog::RunLog(const std::string& path, const RunLog& earlier) : RunLog(path) {
  begin_with(earlier);
}

// Begins with the memory and views that exist already. The synchronisations say that nobody has to
// wait for them.
void RunLog::begin_with(const RunLog& earlier) {
  for (const auto& [address, block] : earlier.allocated_) {
    StreamOp op;
    op.kind = StreamOpKind::kAlloc;
    op.range = {address, block.bytes};
    op.stream = block.stream;
    op.pool = block.pool;
    hear(op, nullptr);
  }
  for (const auto& [where, names] : earlier.views_) {
    for (const std::string& name : names) {
      StreamOp op;
      op.kind = StreamOpKind::kHostView;
      op.range = {where.first, where.second};
      op.name = name;
      hear(op, nullptr);
    }
  }
  StreamOp synchronised;
  synchronised.kind = StreamOpKind::kDeviceSync;
  for (synchronised.device = 0; synchronised.device < kLegacyStreams; ++synchronised.device) {
    write(synchronised);
  }
  used_ = false;
}

void RunLog::remember(const StreamOp& op) {
  used_ = true;
  if (op.kind == StreamOpKind::kAlloc) {
    allocated_[op.range.address] = {op.range.bytes, op.stream, op.pool};
  }
  if (op.kind == StreamOpKind::kFree) allocated_.erase(op.range.address);
}

void RunLog::on(const StreamOp& op) {
  hear(op, place() != nullptr ? place() : place_without_waiting());
}

void RunLog::hear(const StreamOp& op, const char* where) {
  // A device's synchronisation names each of its streams. Streams that had no work are left out.
  if (op.kind == StreamOpKind::kStreamSync && !declared_.contains(op.stream)) return;
  remember(op);
  declare(op.stream);
  StreamOp line = op;
  const bool host = op.range.address >= kHostBase;
  if (host && op.kind == StreamOpKind::kAlloc) pinned_[op.range.address] = op.range.end();
  line.range = moved(op.range);
  if (host && op.kind == StreamOpKind::kFree) pinned_.erase(op.range.address);
  if (host) line.pool = PoolKind::kHost;
  reads_.clear();
  writes_.clear();
  for (const Range range : op.reads) reads_.push_back(moved(range));
  for (const Range range : op.writes) writes_.push_back(moved(range));
  line.reads = reads_;
  line.writes = writes_;
  std::string name(op.name);
  if (where != nullptr) name.append(name.empty() ? "at " : " at ").append(where);
  line.name = name;
  if (op.kind == StreamOpKind::kHostView) views_[key(op.range)].push_back(name);
  if (op.kind == StreamOpKind::kHostViewEnd) end_view(op.range);
  write(line);
}

void RunLog::end_view(Range range) {
  const auto found = views_.find(key(range));
  if (found == views_.end()) return;
  found->second.pop_back();
  if (found->second.empty()) views_.erase(found);
}

void RunLog::destroy_event(EventId event) {
  StreamOp op;
  op.kind = StreamOpKind::kEventDestroy;
  op.event = event;
  write(op);
}

void RunLog::declare(StreamId stream) {
  if (!declared_.insert(stream).second) return;
  const auto number = static_cast<std::uint32_t>(stream);
  StreamOp op;
  op.kind = StreamOpKind::kStream;
  op.stream = stream;
  if (number < kLegacyStreams) {
    op.stream_kind = StreamKind::kLegacy;
    op.device = number;
    text_.call(stream, number == 0 ? "default" : "default of device " + std::to_string(number));
  } else {
    text_.call(stream, "stream " + std::to_string(number - kLegacyStreams + 1));
  }
  write(op);
}

Range RunLog::moved(Range range) {
  if (range.address < kHostBase) return range;
  const auto after = pinned_.upper_bound(range.address);
  const bool pinned = after != pinned_.begin() && range.end() <= std::prev(after)->second;
  if (pinned) return {range.address - kHostBase + kLoggedHost, range.bytes};
  pageable_ += range.bytes;
  return {pageable_ - range.bytes, range.bytes};
}

void RunLog::write(const StreamOp& op) { file_.append(text_.line(op)); }

}  // namespace ferry::vgpu
