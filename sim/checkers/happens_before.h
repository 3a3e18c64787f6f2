// Happens-before: finds two accesses to the same bytes that nothing orders, at least one a write.
//
// Every stream has a vector clock: for each stream, the last op that is certainly done when the
// next op of this stream runs. An event is a copy of a clock, taken by the record: re-recording
// replaces it, and waiting on an event that was never recorded does nothing. The host has one
// clock, too: it learns from event and stream synchronisation, and every op issued later knows
// what the host knew then. So the verdict holds for every timing of the device, for this order of
// the host's calls.
//
//        record e          wait e
//   s0 ──W──●               │          W and R conflict without the wait: s1's clock lacks s0's W
//           └──(clock)──▶ s1 ●──R
//
// A read conflicts with the last write of any of its bytes; a write with the reads since, or with
// the last write where there are none. Of each stream only the latest read is kept: the others
// come before it. After a report the later access stands as the last one, and a stream that
// reads again what it read unordered is not reported again.
//
// Accesses are kept by byte range, over device and host memory, and never forgotten at a free: a
// block that its pool gives to another stream too early is an access that conflicts with one of
// the bytes' earlier life (kReuse). A record_use promises that the pool waits, before it gives
// the bytes out again, for all that its stream was given until the free, and so for all that
// comes before that. For the allocation's own stream it promises nothing, as in PyTorch.
//
// One mistake waits for its consequence: a program may legally write, in place, a tensor that was
// saved and will not be unpacked. Its copy to the host (step `offload`) is then torn, and no order
// could be asked of anybody. It is reported when the torn bytes are read, or were already.
//
// Starting point: the rules of PyTorch's CUDA stream sanitizer (torch/cuda/_sanitizer.py), which
// knows neither reuse nor host memory nor overlapping ranges.
// Not modelled: several host threads, the legacy default stream (whoever reads a log that has it
// adds its waits), what bytes a kernel really touches. All may hide a race; none makes a false one,
// except a poll that was successful: log it as the event sync that it amounts to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/stream_op.h"
#include "sim/checkers/hazard.h"
#include "sim/interval_map.h"

namespace ferry::sim {

// Any ids as 0, 1, 2, … in the order of their first use.
class DenseIds {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t find(std::uint32_t id) const {
    if (id < small_.size()) return small_[id];
    if (id < kSmall) return kNone;
    const auto found = large_.find(id);
    return found == large_.end() ? kNone : found->second;
  }
  std::uint32_t add(std::uint32_t id) {
    if (id < kSmall) {
      if (id >= small_.size()) {
        small_.resize(std::min<std::size_t>(kSmall, std::size_t{id} * 2 + 16), kNone);
      }
      small_[id] = count_;
    } else {
      large_[id] = count_;
    }
    return count_++;
  }

 private:
  static constexpr std::uint32_t kSmall = 1u << 20;
  std::vector<std::uint32_t> small_;
  std::unordered_map<std::uint32_t, std::uint32_t> large_;
  std::uint32_t count_ = 0;
};

// Rows of clocks, all as wide as there are streams. A component is an op's number + 1; 0: none.
class ClockRows {
 public:
  std::uint32_t* row(std::uint32_t i) { return cells_.data() + std::size_t{i} * width_; }
  std::uint32_t width() const { return width_; }
  void resize(std::uint32_t rows) { cells_.resize(std::size_t{rows} * width_, 0); }
  void widen(std::uint32_t width);
  static void join(std::uint32_t* into, const std::uint32_t* from, std::uint32_t width) {
    for (std::uint32_t i = 0; i < width; ++i) into[i] = std::max(into[i], from[i]);
  }

 private:
  std::uint32_t width_ = 8;
  std::vector<std::uint32_t> cells_;
};

class HappensBefore {
 public:
  // host_free_waits: the host pool gives bytes back to the system at once, so that a free of host
  // memory under a copy is a hazard. (PyTorch's pinned pool keeps them until the copy is done.)
  struct Options {
    bool host_free_waits = false;
  };
  HappensBefore() : HappensBefore(Options{}) {}
  explicit HappensBefore(Options options);

  void operator()(const StreamOp& op);
  const std::vector<Hazard>& hazards() const { return log_.hazards(); }

  // The bytes went back to where nothing is given out before the device is done with it
  // (cudaFree): what touched them so far conflicts with nothing that comes.
  void forget(Range range);
  // A destroyed event's record is gone: waiting on it orders nothing.
  void destroy_event(EventId event);

 private:
  static constexpr std::uint16_t kHost = 0xffff;  // in place of a dense stream number

  struct Access {
    std::uint32_t seq = 0;  // the op's number + 1; 0: no access
    std::uint32_t name = 0;
    std::uint16_t stream = 0;  // dense
    StreamOpKind kind = StreamOpKind::kKernel;
    Step step = Step::kUser;
  };
  // What happened last to some bytes.
  struct Cell {
    Access write;
    std::vector<Access> reads;  // since then, at most one per stream
  };
  // One allocation, and afterwards the bytes of what was one.
  struct Life {
    std::uint32_t since = 0;          // the seq of the latest alloc or free of these bytes
    std::uint16_t owner = kHost;      // dense; kHost: host memory, or unknown
    std::vector<std::uint16_t> uses;  // dense streams of record_use
    std::vector<std::uint32_t> done;  // the clock that the pool waits for; empty: nothing
  };
  struct Conflict {
    HazardKind kind;
    bool same_pool;
    Access earlier;
    std::uint64_t begin, end;
  };

  std::uint16_t dense_stream(StreamId stream);
  std::uint32_t* stream_row(std::uint16_t stream) { return streams_.row(stream + 1u); }
  std::uint32_t* host_row() { return streams_.row(0); }
  std::uint16_t issue(StreamId stream);
  void join_host(const std::uint32_t* clock);

  bool ordered(const Access& earlier) const {
    return earlier.stream == kHost || earlier.seq <= now_[earlier.stream];
  }
  void read(Range range);
  void write(Range range);
  void access(const StreamOp& op, std::uint16_t stream);
  void alloc(Range range, std::uint16_t stream);
  void free(Range range);
  void record_use(Range range, std::uint16_t stream);
  void host_free(Range range);
  void drop_done(Range range, const Life& life);
  void conflict(HazardKind kind, const Access& earlier, std::uint64_t begin, std::uint64_t end,
                const Cell& cell);
  void report_conflicts();
  bool waits(const Hazard& hazard, const Access& earlier);
  void read_copy(const Access& copy);
  HazardAccess describe(const Access& access) const;

  Options options_;
  HazardLog log_;
  NameTable names_;
  DenseIds stream_ids_, event_ids_;
  std::vector<StreamId> stream_of_;  // by dense number
  ClockRows streams_, events_;       // streams_: row 0 is the host's
  std::vector<char> recorded_;       // by dense event
  std::vector<std::uint32_t> told_;  // by stream: the version of the host's clock it knows
  std::uint32_t host_version_ = 0;
  std::uint32_t seq_ = 0;  // of the current op
  Access current_;
  const std::uint32_t* now_ = nullptr;             // the clock of the current access
  std::vector<Conflict> conflicts_;                // of the current op
  std::unordered_set<std::uint32_t> read_copies_;  // seqs of offloads
  std::unordered_map<std::uint32_t, std::vector<Hazard>> torn_copies_;  // likewise; found by key
  IntervalMap<Cell> cells_;
  IntervalMap<Life> lives_;
};

}  // namespace ferry::sim
