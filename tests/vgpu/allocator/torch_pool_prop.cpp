// sim's caching allocator against PyTorch's own, operation by operation, with every option: random
// programs of allocations, frees, uses on other streams, waits and empty_cache on a device whose
// memory is short. Compared are the trace (so every address, in its segment), all gauges with their
// peaks, the counts, and the text where memory is out.
#include "sim/gpu/device_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <torch/version.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/alloc_conf.h"
#include "tests/sim/gpu/pool_clock.h"
#include "tests/vgpu/allocator/torch_pool.h"

namespace ferry::vgpu {
namespace {

using sim::DevicePool;
using sim::PoolEntry;

constexpr std::int64_t kMiB = 1 << 20;

rc::Gen<std::int64_t> within(std::int64_t low, std::int64_t high) {
  return rc::gen::resize(100, rc::gen::inRange<std::int64_t>(low, high + 1));
}

struct Action {
  std::int64_t kind;  // 0 to 4 allocate, 5 to 7 free, 8 use, 9 finish a stream, 10 empty the cache
  std::int64_t bytes;
  std::uint32_t stream;
  std::uint32_t which;
};

std::ostream& operator<<(std::ostream& out, const Action& a) {
  return out << '{' << a.kind << ' ' << a.bytes << "B s" << a.stream << " #" << a.which << '}';
}

// Of every class of sizes, and often those that fit each other.
rc::Gen<std::int64_t> sizes() {
  const auto of_mib = rc::gen::map(within(1, 80), [](std::int64_t n) { return n * kMiB; });
  const auto beside = rc::gen::apply(
      [](std::int64_t power, std::int64_t by) {
        return std::max<std::int64_t>((std::int64_t{1} << power) + by, 1);
      },
      within(9, 26), within(-2, 2));
  return rc::gen::oneOf(within(1, 3000), within(1, 2 * kMiB), within(1, 12 * kMiB),
                        within(1, 70 * kMiB), of_mib, beside);
}

rc::Gen<std::vector<Action>> actions(std::int64_t streams) {
  const auto kind = rc::gen::map(within(0, 120), [](std::int64_t n) { return n / 12; });
  const auto action = rc::gen::apply(
      [](std::int64_t what, std::int64_t bytes, std::int64_t stream, std::int64_t which) {
        return Action{what, bytes, static_cast<std::uint32_t>(stream),
                      static_cast<std::uint32_t>(which)};
      },
      kind, sizes(), within(0, streams - 1), within(0, 1000));
  return rc::gen::resize(400, rc::gen::container<std::vector<Action>>(action));
}

struct Setting {
  std::string conf;
  std::int64_t percent = 100;  // of the device's memory
  std::int64_t context_bytes = 0;
  std::int64_t streams = 1;
};

std::ostream& operator<<(std::ostream& out, const Setting& s) {
  return out << '"' << s.conf << "\" " << s.percent << "%, context " << s.context_bytes << ", "
             << s.streams << " streams";
}

Setting draw_setting() {
  Setting setting;
  const auto add = [&](const std::string& option) {
    setting.conf += (setting.conf.empty() ? "" : ",") + option;
  };
  const auto one_in = [](std::int64_t n) { return *within(0, n - 1) == n - 1; };
  std::int64_t large_mb = 20;
  const bool expandable = one_in(3);
  if (expandable) add("expandable_segments:True");
  if (kHasLargeSegments && one_in(4)) {
    large_mb = expandable ? 2 * *within(6, 20) : *within(11, 40);
    add("large_segment_size_mb:" + std::to_string(large_mb));
  }
  if (one_in(3)) add("max_split_size_mb:" + std::to_string(large_mb + *within(0, 30)));
  if (one_in(4)) add("max_non_split_rounding_mb:" + std::to_string(large_mb + *within(0, 30)));
  if (one_in(4)) {
    add("roundup_power2_divisions:" + std::to_string(std::int64_t{1} << *within(0, 5)));
  } else if (one_in(4)) {
    std::string list;
    for (int place = 0; place < 16; ++place) {
      if (*within(0, 1) == 0) continue;
      const std::int64_t log = *within(-1, 4);
      list += (list.empty() ? "" : ",") + std::to_string(std::int64_t{1} << place) + ":" +
              std::to_string(log < 0 ? 0 : std::int64_t{1} << log);
    }
    if (one_in(2)) list += std::string(list.empty() ? "" : ",") + ">:4";
    add("roundup_power2_divisions:[" + list + "]");
  }
  if (one_in(2)) setting.percent = *within(20, 100);
  if (one_in(2)) add("garbage_collection_threshold:0." + std::to_string(*within(1, 99)));
  setting.context_bytes = one_in(2) ? 0 : *within(0, 200) * kMiB;
  setting.streams = *within(1, TorchPool::kStreams);
  return setting;
}

// sim's pool, with segments where PyTorch's are (of equal blocks that with the lowest address is
// taken), and a clock that knows what the runtime does: who gives memory back waits for the device.
class SimWorld final : public sim::PoolTrace {
 public:
  SimWorld(const AllocConf& conf, std::int64_t context_bytes)
      : pool(0,
             {.total_bytes = TorchPool::kTotalBytes,
              .context_bytes = context_bytes,
              .conf = conf,
              .place = [this] { return place(); }},
             clock) {
    pool.trace_to(this);
  }
  void on(const PoolEntry& entry) override {
    trace.push_back(entry);
    if (entry.action != MemoryAction::kSegmentFree && entry.action != MemoryAction::kSegmentUnmap) {
      return;
    }
    for (std::uint32_t stream = 0; stream < TorchPool::kStreams; ++stream) {
      clock.finish(StreamId{stream});
    }
  }
  // What PyTorch did in this operation.
  void take(TorchPool& real) {
    expected = real.take_trace();
    reservations_ = real.take_reservations();
  }

  sim::PoolClock clock;
  DevicePool pool;
  std::vector<PoolEntry> trace;
  std::vector<MemoryEvent> expected;

 private:
  std::uint64_t place() {
    if (pool.options().conf.expandable_segments) {
      RC_ASSERT(!reservations_.empty());
      const std::uint64_t address = reservations_.front();
      reservations_.pop_front();
      return address;
    }
    RC_ASSERT(trace.size() < expected.size());
    RC_ASSERT(expected[trace.size()].action == MemoryAction::kSegmentAlloc);
    return expected[trace.size()].address;
  }

  std::deque<std::uint64_t> reservations_;
};

TorchFigures figures_of(const sim::DevicePoolStats& stats) {
  return {stats.allocated_bytes.current, stats.allocated_bytes.peak,
          stats.active_bytes.current,    stats.active_bytes.peak,
          stats.requested_bytes.current, stats.requested_bytes.peak,
          stats.reserved_bytes.current,  stats.reserved_bytes.peak,
          stats.num_alloc_retries,       stats.num_ooms,
          stats.num_sync_all_streams,    stats.num_device_alloc,
          stats.num_device_free};
}

class Comparison {
 public:
  explicit Comparison(const Setting& setting)
      : real_(setting.conf, static_cast<double>(setting.percent) / 100, setting.context_bytes),
        sim_(conf_of(setting), setting.context_bytes) {}

  void apply(const Action& a) {
    if (a.kind <= 4) {
      allocate(a);
    } else if (a.kind == 9) {
      real_.finish(a.stream);
      sim_.clock.finish(StreamId{a.stream});
    } else if (a.kind == 10) {
      real_.empty_cache();
      sim_.take(real_);
      sim_.pool.empty_cache();
    } else if (!live_.empty()) {
      const std::size_t at = a.which % live_.size();
      const auto [real, block] = live_[at];
      if (a.kind == 8) {
        real_.record_use(real, a.stream);
        sim_.pool.record_use(block, StreamId{a.stream});
      } else {
        real_.free(real);
        sim_.take(real_);
        sim_.pool.free(block);
        live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    compare();
  }

  std::int64_t count(MemoryAction action) const {
    const auto found = counts_.find(action);
    return found == counts_.end() ? 0 : found->second;
  }
  const sim::DevicePoolStats& stats() const { return sim_.pool.stats(); }

 private:
  // Which is of other words in 2.15, where segments are expandable.
  static std::string without_advice(const std::string& message) {
    const std::string last = "is reserved by PyTorch but unallocated.";
    const std::size_t at = message.find(last);
    return at == std::string::npos ? message : message.substr(0, at + last.size());
  }

  static AllocConf conf_of(const Setting& setting) {
    AllocConf conf = parse_alloc_conf(setting.conf, "conf");
    conf.per_process_memory_fraction = static_cast<double>(setting.percent) / 100;
    conf.equal_blocks = equal_blocks_of(TORCH_VERSION);
    return conf;
  }

  void allocate(const Action& a) {
    void* const real = real_.allocate(a.bytes, a.stream);
    sim_.take(real_);
    sim::Block* block = nullptr;
    try {
      block = sim_.pool.allocate(a.bytes, StreamId{a.stream});
    } catch (const sim::OutOfMemory& error) {
      RC_ASSERT(without_advice(real_.out_of_memory()) == without_advice(error.what()));
    }
    RC_ASSERT((real == nullptr) == (block == nullptr));
    if (block != nullptr) live_.emplace_back(real, block);
  }

  void compare() {
    std::vector<MemoryEvent> real = std::exchange(sim_.expected, {});
    std::vector<PoolEntry> sim = std::exchange(sim_.trace, {});
    RC_ASSERT(real.size() == sim.size());
    order_completions(real);
    order_completions(sim);
    for (std::size_t i = 0; i < sim.size(); ++i) {
      RC_ASSERT(real[i].action == sim[i].action);
      RC_ASSERT(real[i].address == sim[i].address);
      RC_ASSERT(real[i].bytes == sim[i].bytes);
      RC_ASSERT(real[i].stream == static_cast<std::uint64_t>(sim[i].stream));
      ++counts_[sim[i].action];
    }
    RC_ASSERT(real_.figures() == figures_of(sim_.pool.stats()));
  }

  // Frees that complete together are in an order of the streams' own (sim/gpu/pool_trace.h).
  template <class Entry>
  static void order_completions(std::vector<Entry>& trace) {
    const auto completes = [](const Entry& entry) {
      return entry.action == MemoryAction::kFreeCompleted;
    };
    for (auto from = trace.begin(); from != trace.end();) {
      from = std::find_if(from, trace.end(), completes);
      const auto to = std::find_if_not(from, trace.end(), completes);
      std::sort(from, to, [](const Entry& a, const Entry& b) { return a.address < b.address; });
      from = to;
    }
  }

  TorchPool real_;
  SimWorld sim_;
  std::vector<std::pair<void*, sim::Block*>> live_;
  std::map<MemoryAction, std::int64_t> counts_;
};

RC_GTEST_PROP(TorchPoolProp, SimsAllocatorIsPyTorchs, ()) {
  const Setting setting = draw_setting();
  RC_LOG() << setting << "\n";
  const std::vector<Action> program = *actions(setting.streams);
  Comparison comparison(setting);
  for (const Action& action : program) comparison.apply(action);
  RC_CLASSIFY(comparison.stats().num_ooms > 0, "out of memory");
  RC_CLASSIFY(comparison.stats().num_alloc_retries > 0, "retried");
  RC_CLASSIFY(comparison.count(MemoryAction::kSegmentFree) > 0, "freed a segment");
  RC_CLASSIFY(comparison.count(MemoryAction::kSegmentUnmap) > 0, "unmapped");
}

}  // namespace
}  // namespace ferry::vgpu
