// The rules of happens_before.h. Clocks first, then accesses, then lives, then reports.
#include "sim/checkers/happens_before.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace ferry::sim {
namespace {

bool is_write(HazardKind kind) {
  return kind == HazardKind::kWriteAfterRead || kind == HazardKind::kWriteAfterWrite;
}

}  // namespace

void ClockRows::widen(std::uint32_t width) {
  const std::size_t rows = cells_.size() / width_;
  std::vector<std::uint32_t> wide(rows * width, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(cells_.data() + i * width_, width_, wide.data() + i * width);
  }
  cells_ = std::move(wide);
  width_ = width;
}

HappensBefore::HappensBefore(Options options) : options_(options) { streams_.resize(1); }

std::uint16_t HappensBefore::dense_stream(StreamId stream) {
  const auto id = static_cast<std::uint32_t>(stream);
  std::uint32_t dense = stream_ids_.find(id);
  if (dense == DenseIds::kNone) {
    dense = stream_ids_.add(id);
    if (dense >= kHost) throw std::length_error("more than 65534 streams");
    stream_of_.push_back(stream);
    if (dense >= streams_.width()) {
      streams_.widen(dense * 2);
      events_.widen(dense * 2);
    }
    streams_.resize(dense + 2);
    told_.push_back(0);
  }
  return static_cast<std::uint16_t>(dense);
}

// The host gives a stream an op: the stream's clock learns what the host knows.
std::uint16_t HappensBefore::issue(StreamId id) {
  const std::uint16_t stream = dense_stream(id);
  if (told_[stream] != host_version_) {
    ClockRows::join(stream_row(stream), host_row(), streams_.width());
    told_[stream] = host_version_;
  }
  return stream;
}

void HappensBefore::join_host(const std::uint32_t* clock) {
  ClockRows::join(host_row(), clock, streams_.width());
  host_version_++;
}

void HappensBefore::destroy_event(EventId event) {
  const std::uint32_t row = event_ids_.find(static_cast<std::uint32_t>(event));
  if (row != DenseIds::kNone) recorded_[row] = 0;
}

void HappensBefore::operator()(const StreamOp& op) {
  if (seq_ == std::numeric_limits<std::uint32_t>::max()) throw std::length_error("2^32 ops");
  seq_++;
  const auto event = static_cast<std::uint32_t>(op.event);
  switch (op.kind) {
    case StreamOpKind::kKernel:
    case StreamOpKind::kCopy:
      return access(op, issue(op.stream));
    case StreamOpKind::kHostRead:
    case StreamOpKind::kHostWrite:
      return access(op, kHost);
    case StreamOpKind::kRecord: {
      const std::uint16_t stream = issue(op.stream);
      std::uint32_t row = event_ids_.find(event);
      if (row == DenseIds::kNone) {
        row = event_ids_.add(event);
        events_.resize(row + 1);
        recorded_.push_back(0);
      }
      std::copy_n(stream_row(stream), streams_.width(), events_.row(row));
      recorded_[row] = 1;
      return;
    }
    case StreamOpKind::kWait: {
      const std::uint16_t stream = issue(op.stream);
      const std::uint32_t row = event_ids_.find(event);
      if (row == DenseIds::kNone || recorded_[row] == 0) return;
      return ClockRows::join(stream_row(stream), events_.row(row), streams_.width());
    }
    case StreamOpKind::kEventSync: {
      const std::uint32_t row = event_ids_.find(event);
      if (row != DenseIds::kNone && recorded_[row] != 0) join_host(events_.row(row));
      return;
    }
    case StreamOpKind::kStreamSync:
      return join_host(stream_row(issue(op.stream)));
    case StreamOpKind::kAlloc:
      return alloc(op.range, is_host(op.range.address) ? kHost : dense_stream(op.stream));
    case StreamOpKind::kFree:
      if (options_.host_free_waits && is_host(op.range.address)) {
        current_ = {seq_, names_.intern(op.name), kHost, op.kind, op.step};
        host_free(op.range);
      }
      return free(op.range);
    case StreamOpKind::kRecordUse:
      return record_use(op.range, dense_stream(op.stream));
  }
}

void HappensBefore::access(const StreamOp& op, std::uint16_t stream) {
  current_ = {seq_, names_.intern(op.name), stream, op.kind, op.step};
  if (stream == kHost) {
    now_ = host_row();
  } else {
    stream_row(stream)[stream] = seq_;
    now_ = stream_row(stream);
  }
  for (const Range& range : op.reads) read(range);
  if (op.kind == StreamOpKind::kHostRead) read(op.range);
  for (const Range& range : op.writes) write(range);
  if (op.kind == StreamOpKind::kHostWrite) write(op.range);
  if (!conflicts_.empty()) report_conflicts();
}

void HappensBefore::read(Range range) {
  cells_.update(range.address, range.end(), [&](std::uint64_t begin, std::uint64_t end, Cell& c) {
    if (c.write.seq != 0 && !ordered(c.write)) {
      conflict(HazardKind::kReadAfterWrite, c.write, begin, end, c);
    }
    if (c.write.step == Step::kOffload) read_copy(c.write);
    for (Access& read : c.reads) {
      if (read.stream == current_.stream) {
        read = current_;
        return;
      }
    }
    c.reads.push_back(current_);
  });
}

void HappensBefore::write(Range range) {
  if (range.bytes == 0) return;
  Cell& cell = cells_.merge(range.address, range.end(),
                            [&](std::uint64_t begin, std::uint64_t end, const Cell& c) {
                              for (const Access& read : c.reads) {
                                if (!ordered(read))
                                  conflict(HazardKind::kWriteAfterRead, read, begin, end, c);
                              }
                              if (c.reads.empty() && c.write.seq != 0 && !ordered(c.write)) {
                                conflict(HazardKind::kWriteAfterWrite, c.write, begin, end, c);
                              }
                            });
  cell.write = current_;
  cell.reads.clear();
}

void HappensBefore::alloc(Range range, std::uint16_t stream) {
  if (range.bytes == 0) return;
  Life& life = lives_.merge(range.address, range.end(),
                            [&](std::uint64_t begin, std::uint64_t end, const Life& old) {
                              if (!old.done.empty()) drop_done({begin, end - begin}, old);
                            });
  life.since = seq_;
  life.owner = stream;
  life.uses.clear();
  life.done.clear();
}

void HappensBefore::free(Range range) {
  lives_.update(range.address, range.end(), [&](std::uint64_t, std::uint64_t, Life& life) {
    life.since = seq_;
    for (const std::uint16_t use : life.uses) {
      life.done.resize(streams_.width(), 0);
      // The pool records an event on that stream now: an op like any other.
      ClockRows::join(life.done.data(), stream_row(use), streams_.width());
      ClockRows::join(life.done.data(), host_row(), streams_.width());
    }
    life.uses.clear();
  });
}

// PyTorch records the use for the whole block, wherever the tensor lies in it.
void HappensBefore::record_use(Range range, std::uint16_t stream) {
  const auto add = [&](std::uint64_t, std::uint64_t, Life& life) {
    if (stream == life.owner) return;
    if (std::find(life.uses.begin(), life.uses.end(), stream) == life.uses.end()) {
      life.uses.push_back(stream);
    }
  };
  if (lives_.find(range.address) != nullptr) {
    lives_.touch(range.address, range.end(), add);
  } else {
    lives_.update(range.address, range.end(), add);
  }
}

// What the pool waited for is over, and so is what the host did before the free.
void HappensBefore::drop_done(Range range, const Life& life) {
  const auto is_done = [&](const Access& access) {
    if (access.stream == kHost) return access.seq < life.since;
    return access.stream < life.done.size() && access.seq <= life.done[access.stream];
  };
  cells_.modify(range.address, range.end(), [&](std::uint64_t, std::uint64_t, Cell& c) {
    std::erase_if(c.reads, is_done);
    if (is_done(c.write)) c.write = Access{};
  });
}

void HappensBefore::forget(Range range) {
  cells_.erase(range.address, range.end());
  lives_.erase(range.address, range.end());
}

void HappensBefore::host_free(Range range) {
  now_ = host_row();
  cells_.modify(range.address, range.end(), [&](std::uint64_t begin, std::uint64_t end, Cell& c) {
    for (const Access& read : c.reads) {
      if (!ordered(read)) conflict(HazardKind::kHostFree, read, begin, end, c);
    }
    if (c.write.seq != 0 && !ordered(c.write)) {
      conflict(HazardKind::kHostFree, c.write, begin, end, c);
    }
  });
  report_conflicts();
}

// Notes a conflict for the bytes [begin, end), which may have had several lives side by side.
void HappensBefore::conflict(HazardKind kind, const Access& earlier, std::uint64_t begin,
                             std::uint64_t end, const Cell& cell) {
  if (earlier.seq == seq_) return;
  const auto note = [&](std::uint64_t from, std::uint64_t to, std::uint32_t since, bool same) {
    if (from >= to) return;
    HazardKind what = kind;
    if (kind == HazardKind::kReadAfterWrite) {
      for (const Access& read : cell.reads) {
        if (read.stream == current_.stream && read.seq >= since) return;  // reported then
      }
    }
    if (earlier.seq < since && kind != HazardKind::kHostFree) {
      what = HazardKind::kReuse;
    } else if (is_host(begin) && is_write(kind)) {
      what = HazardKind::kHostRewrite;
    }
    conflicts_.push_back({what, same, earlier, from, to});
  };
  std::uint64_t at = begin;
  lives_.visit(begin, end, [&](std::uint64_t from, std::uint64_t to, const Life& life) {
    note(at, from, 0, false);
    note(std::max(at, from), std::min(to, end), life.since, life.owner == current_.stream);
    at = std::min(to, end);
  });
  note(at, end, 0, false);
}

// One report for each earlier op and kind, however many pieces of memory they met on. An op that
// reads and then writes what it should have waited for makes one mistake, not two.
void HappensBefore::report_conflicts() {
  std::sort(conflicts_.begin(), conflicts_.end(), [](const Conflict& a, const Conflict& b) {
    return std::tie(a.earlier.seq, a.kind, a.begin) < std::tie(b.earlier.seq, b.kind, b.begin);
  });
  std::uint32_t read_from = 0;
  for (std::size_t i = 0; i < conflicts_.size();) {
    const Conflict first = conflicts_[i];
    std::uint64_t end = first.end;
    for (; i < conflicts_.size() && conflicts_[i].earlier.seq == first.earlier.seq &&
           conflicts_[i].kind == first.kind;
         ++i) {
      if (conflicts_[i].begin <= end) end = std::max(end, conflicts_[i].end);
    }
    if (first.kind == HazardKind::kReadAfterWrite) read_from = first.earlier.seq;
    if (first.kind == HazardKind::kWriteAfterWrite && first.earlier.seq == read_from) continue;
    Hazard hazard;
    hazard.kind = first.kind;
    hazard.missing = missing_step(first.kind, first.earlier.step, current_.step,
                                  is_host(first.begin), first.same_pool);
    hazard.earlier = describe(first.earlier);
    hazard.later = describe(current_);
    hazard.range = {first.begin, end - first.begin};
    if (!waits(hazard, first.earlier)) log_.report(std::move(hazard));
  }
  conflicts_.clear();
}

// A copy to the host that a write of the program's tears harms nobody until it is read.
bool HappensBefore::waits(const Hazard& hazard, const Access& earlier) {
  if (hazard.kind != HazardKind::kWriteAfterRead || earlier.step != Step::kOffload ||
      current_.step != Step::kUser || read_copies_.contains(earlier.seq)) {
    return false;
  }
  torn_copies_[earlier.seq].push_back(hazard);
  return true;
}

void HappensBefore::read_copy(const Access& copy) {
  if (!read_copies_.insert(copy.seq).second) return;
  const auto torn = torn_copies_.find(copy.seq);
  if (torn == torn_copies_.end()) return;
  for (Hazard& hazard : torn->second) log_.report(std::move(hazard));
  torn_copies_.erase(torn);
}

HazardAccess HappensBefore::describe(const Access& access) const {
  const bool host = access.stream == kHost;
  return {access.seq - 1, access.kind, host ? StreamId{} : stream_of_[access.stream],
          host,           access.step, names_.text(access.name)};
}

}  // namespace ferry::sim
