// The probe for any of Ferry's real devices (shared/seam/device.h). It makes the same calls as the
// offloader, on the same lanes, and uses the spans of copies that the device reports.
//
// A round queues several copies on one lane, or on both, and takes the span of each. Spans do not
// include the host's time to issue copies and to wake up, except with pageable memory, where the
// host copies. As with the offloader, reloads go to storages that nobody has written yet. If both
// lanes copy, only copies that ran while the other lane was busy count.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "real/calibrate/probe.h"
#include "real/tensors/span.h"

namespace ferry::real::calibrate {

// D also needs set_observer, and flush_spans or finish, which wait for all copies.
template <Device D>
class ProbeOf final : public Probe {
 public:
  ProbeOf(D device, c10::Device torch_device, Machine machine, std::vector<HostMemory> kinds)
      : device_(std::move(device)),
        torch_device_(torch_device),
        machine_(std::move(machine)),
        kinds_(std::move(kinds)) {
    device_.set_observer([this](const Span& span) {
      const std::lock_guard lock(mutex_);
      spans_.push_back(span);
    });
  }
  ~ProbeOf() override { device_.set_observer(nullptr); }

  Machine machine() const override { return machine_; }

  std::vector<CopyTime> copies(const Effort& effort) override {
    std::vector<CopyTime> times;
    for (const HostMemory memory : kinds_) {
      for (const std::int64_t bytes : effort.copy_bytes) {
        measure(memory, bytes, {true, false}, effort, times);
        measure(memory, bytes, {false, true}, effort, times);
        measure(memory, bytes, {true, true}, effort, times);
      }
    }
    return times;
  }

  std::vector<AllocationTime> host_blocks(const Effort& effort) override {
    std::vector<AllocationTime> times;
    for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{1} << 24}) {
      if (effort.small && bytes > effort.copy_bytes.back()) continue;
      std::vector<std::int64_t> fresh;
      std::vector<std::int64_t> cached;
      std::vector<typename D::HostBuffer> held;  // kept, so that the next one is fresh
      for (std::int64_t round = 0; round < effort.rounds; ++round) {
        fresh.push_back(host_block_ns(bytes, &held));
      }
      for (auto& host : held) device_.release_host(Step::kUser, std::move(host), {});
      for (std::int64_t round = 0; round < effort.rounds; ++round) {
        cached.push_back(host_block_ns(bytes, nullptr));
      }
      times.push_back({kFreshHostBlock, bytes, timing_of(fresh)});
      times.push_back({"host block, cached", bytes, timing_of(cached)});
    }
    return times;
  }

 private:
  using Stream = typename D::Stream;
  using Directions = std::array<bool, 2>;  // indexed by Lane

  std::int64_t host_block_ns(std::int64_t bytes, std::vector<typename D::HostBuffer>* keep) {
    const std::int64_t begin = now_ns();
    auto host = device_.allocate_host(Step::kUser, bytes, HostMemory::kPinned);
    if (keep == nullptr) device_.release_host(Step::kUser, std::move(host), {});
    const std::int64_t ns = now_ns() - begin;
    if (keep != nullptr) keep->push_back(std::move(host));
    return std::max<std::int64_t>(ns, 1);
  }

  void wait_for_all() {
    if constexpr (requires { device_.flush_spans(); }) {
      device_.flush_spans();
    } else {
      device_.finish();
    }
  }

  std::vector<Span> take_spans() {
    wait_for_all();
    const std::lock_guard lock(mutex_);
    return std::exchange(spans_, {});
  }

  void measure(HostMemory memory, std::int64_t bytes, Directions directions, const Effort& effort,
               std::vector<CopyTime>& times) {
    std::array<std::vector<std::int64_t>, 2> samples;
    // Runs one more round: the first one pins memory and warms up.
    const std::int64_t rounds = bytes >= std::int64_t{1} << 26 ? 3 : effort.rounds;
    for (std::int64_t round = 0; round <= std::min(rounds, effort.rounds); ++round) {
      const std::vector<Span> spans = run(memory, bytes, directions);
      if (round == 0) continue;
      for (const Lane lane : {Lane::kDeviceToHost, Lane::kHostToDevice}) {
        const bool both = directions[0] && directions[1];
        const std::int64_t ns = mean_ns(spans, lane, both);
        if (ns > 0) samples[static_cast<std::size_t>(lane)].push_back(ns);
      }
    }
    for (const Lane lane : {Lane::kDeviceToHost, Lane::kHostToDevice}) {
      auto& of_lane = samples[static_cast<std::size_t>(lane)];
      if (of_lane.empty()) continue;
      times.push_back({lane, memory, directions[0] && directions[1], bytes, timing_of(of_lane)});
    }
  }

  // Returns the mean time of a lane's copies in a round, or with `both` of those that ran while the
  // other lane copied. 0 if there were none.
  static std::int64_t mean_ns(const std::vector<Span>& spans, Lane lane, bool both) {
    std::int64_t begin = std::numeric_limits<std::int64_t>::min();
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    if (both) {
      std::swap(begin, end);
      for (const Span& span : spans) {
        if (span.lane == lane) continue;
        begin = std::min(begin, span.begin_ns);
        end = std::max(end, span.end_ns);
      }
    }
    std::int64_t total = 0;
    std::int64_t count = 0;
    for (const Span& span : spans) {
      if (span.lane != lane || span.begin_ns < begin || span.end_ns > end) continue;
      total += std::max<std::int64_t>(span.end_ns - span.begin_ns, 1);
      ++count;
    }
    return count == 0 ? 0 : total / count;
  }

  // Runs the copies of a round and returns their spans.
  std::vector<Span> run(HostMemory memory, std::int64_t bytes, Directions directions) {
    const auto count =
        static_cast<std::size_t>(std::clamp<std::int64_t>((std::int64_t{1} << 25) / bytes, 3, 64));
    const at::Tensor source = at::full({bytes}, 1, at::device(torch_device_).dtype(at::kByte));
    const auto storage = device_.storage(source);
    const Stream down = device_.lane(Lane::kDeviceToHost);
    const Stream up = device_.lane(Lane::kHostToDevice);
    std::vector<typename D::HostBuffer> from(directions[1] ? count : 0);
    std::vector<typename D::HostBuffer> to(directions[0] ? count : 0);
    std::vector<typename D::Storage> targets;
    follow(down);
    for (auto& host : from) {  // these get the bytes to copy back
      host = device_.allocate_host(Step::kUser, bytes, memory);
      device_.offload(Step::kUser, storage, 0, host, down);
      targets.push_back(device_.allocate(Step::kUser, bytes, device_.current_stream()));
    }
    for (auto& host : to) host = device_.allocate_host(Step::kUser, bytes, memory);
    take_spans();
    follow(up);
    for (std::size_t i = 0; i < count; ++i) {
      if (directions[0]) device_.offload(Step::kUser, storage, 0, to[i], down);
      if (directions[1]) device_.reload(Step::kUser, from[i], targets[i], up);
    }
    std::vector<Span> spans = take_spans();
    for (auto* const hosts : {&from, &to}) {
      for (auto& host : *hosts) device_.release_host(Step::kUser, std::move(host), {});
    }
    return spans;
  }

  // Makes later work of the lane wait for everything computed so far.
  void follow(const Stream& lane) {
    device_.wait(Step::kUser, lane, device_.record(Step::kUser, device_.current_stream()));
  }

  D device_;
  const c10::Device torch_device_;
  const Machine machine_;
  const std::vector<HostMemory> kinds_;
  std::mutex mutex_;
  std::vector<Span> spans_;
};

}  // namespace ferry::real::calibrate
