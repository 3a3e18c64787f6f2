#include "sim/peak/log_peak.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "formats/error.h"
#include "formats/stream_log.h"

namespace ferry::peak {
namespace {

constexpr std::int64_t kSumMost = std::int64_t{1} << 62;

// Splits "aten::mm at train.py:12 in step" into the operator and its place.
std::pair<std::string, std::string> split(const std::string& name) {
  constexpr std::string_view kAt = " at ";
  if (name.starts_with(kAt.substr(1))) return {"", name.substr(kAt.size() - 1)};
  const std::size_t at = name.find(kAt);
  if (at == std::string::npos) return {name, ""};
  return {name.substr(0, at), name.substr(at + kAt.size())};
}

}  // namespace

std::uint32_t LogPeakFinder::number_of(std::string_view name) {
  if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(name);
  numbers_.emplace(name, number);
  return number;
}

void LogPeakFinder::allocate(const StreamOp& op) {
  if (op.pool == PoolKind::kHost || op.range.bytes == 0) return;
  const bool plain = op.pool == PoolKind::kMalloc;
  auto& live = plain ? live_plain_ : live_;
  const auto stream = devices_.find(op.stream);
  Pool& pool = (plain ? plain_ : pools_)[stream == devices_.end() ? 0 : stream->second];
  free(op.range.address);  // a mistake of the log, which `ferry check` reports
  live[op.range.address] = {{op.range.end(), operations_, operations_, number_of(op.name), false},
                            &pool};
  pool.now += static_cast<std::int64_t>(op.range.bytes);
  if (pool.now > kSumMost) throw LimitReached("the log has more than 2^62 bytes at a time");
  if (pool.now <= pool.most) return;
  pool.most = pool.now;
  pool.most_at = operations_;
  pool.gone.clear();
}

void LogPeakFinder::free(std::uint64_t address) {
  for (auto* live : {&live_, &live_plain_}) {
    const auto found = live->find(address);
    if (found == live->end()) continue;
    const auto& [block, pool] = found->second;
    pool->now -= static_cast<std::int64_t>(block.end - address);
    if (block.allocated <= pool->most_at) pool->gone.emplace_back(address, block);
    live->erase(found);
    return;
  }
}

void LogPeakFinder::use(Range range, bool writes, std::string_view name) {
  for (auto* live : {&live_, &live_plain_}) {
    const auto next = live->upper_bound(range.address);
    if (next == live->begin()) continue;
    WrittenBlock& block = std::prev(next)->second.block;
    if (range.address >= block.end) continue;
    block.used = operations_;
    if (writes && !block.written) {
      block.written = true;
      block.owner = number_of(name);
    }
  }
}

void LogPeakFinder::operator()(const StreamOp& op) {
  ++operations_;
  switch (op.kind) {
    case StreamOpKind::kStream:
      devices_[op.stream] = op.device;
      return;
    case StreamOpKind::kAlloc:
      return allocate(op);
    case StreamOpKind::kFree:
      return free(op.range.address);
    default:
      for (const Range& range : op.writes) use(range, true, op.name);
      for (const Range& range : op.reads) use(range, false, op.name);
  }
}

LogPeak LogPeakFinder::described(std::uint32_t device, const Pool& pool) const {
  std::map<std::uint32_t, LogOwner> owners;
  const auto add = [&](std::uint64_t address, const WrittenBlock& block) {
    if (block.allocated > pool.most_at) return;
    LogOwner& owner = owners[block.owner];
    const auto bytes = static_cast<std::int64_t>(block.end - address);
    owner.bytes += bytes;
    ++owner.blocks;
    // Libraries use workspaces without an operation in the log.
    const bool used = block.used > block.allocated;
    if (used && block.used <= pool.most_at) owner.done_bytes += bytes;
  };
  for (const auto& [address, block] : pool.gone) add(address, block);
  for (const auto* live : {&live_, &live_plain_}) {
    for (const auto& [address, each] : *live) {
      if (each.pool == &pool) add(address, each.block);
    }
  }
  LogPeak peak{.device = device, .bytes = pool.most, .operation = pool.most_at};
  for (auto& [number, owner] : owners) {
    std::tie(owner.what, owner.place) = split(names_[number]);
    peak.owners.push_back(std::move(owner));
  }
  std::sort(peak.owners.begin(), peak.owners.end(), [](const LogOwner& a, const LogOwner& b) {
    return std::tie(b.bytes, a.place, a.what) < std::tie(a.bytes, b.place, b.what);
  });
  return peak;
}

LogPeak LogPeakFinder::peak() const {
  LogPeak found;
  const auto& pools = pools_.empty() ? plain_ : pools_;
  for (const auto& [device, pool] : pools) {
    if (pool.most > found.bytes) found = described(device, pool);
  }
  found.devices = pools.size();
  found.operations = operations_;
  return found;
}

LogPeak peak_of_log(LineSource& lines) {
  constexpr std::size_t kNamesMost = 4096;
  StreamLogReader reader(lines.file());
  LogPeakFinder finder;
  StreamOp op;
  std::string_view text;
  try {
    while (lines.next(text)) {
      if (!reader.read(text, lines.number(), op)) continue;
      finder(op);
      // Streams stay known, because they say on which device a block is.
      if (reader.names() < kNamesMost) continue;
      reader.forget_events_if([](EventId) { return true; });
      reader.forget_tokens_if([](HostToken) { return true; });
      reader.forget_buffers_if([](Range) { return true; });
    }
  } catch (const std::length_error& error) {
    throw InputError(lines.file(), lines.number(), error.what());
  }
  return finder.peak();
}

}  // namespace ferry::peak
