// The stream program of a training step that offloads (2N kernels, N copies, 6N - 4 operations),
// built into the discrete-event engine or into the hand loop.
//
// Forward: kernels K_1..K_N, a record F_j after K_2j, and on the copy stream D2H_j after F_j.
// Backward: K_(N+2j) waits for H_j, the end of the j-th H2D, and is followed by the record B_j; the
// j-th H2D waits for its slot, the end of K_(N+2j-8) = B_(j-4). A host submits both streams in
// turn.
//
// Where a device has several such pairs of streams they share its three engines, and the host gives
// each pair some operations in turn, as a program with several threads of work does.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "bench/hand_loop.h"
#include "formats/hash.h"
#include "sim/gpu/engine.h"

namespace ferry::bench {

// Builds into the engine: 1 GB/s, so that a copy of b bytes takes b ns.
struct EngineTarget {
  sim::Engine& engine;
  using Device = sim::DeviceId;
  using Stream = StreamId;
  using Mark = sim::Signal;
  Device device() { return engine.add_device({1000, 1000, 1000, 1000, 0}); }
  Stream stream(Device device) { return engine.add_stream(device); }
  void kernel(Stream s, sim::Time ns) { engine.kernel(s, ns, 0); }
  void down(Stream s, sim::Time ns) { engine.copy(s, CopyKind::kDeviceToHost, ns, 0); }
  void up(Stream s, sim::Time ns) { engine.copy(s, CopyKind::kHostToDevice, ns, 0); }
  Mark record(Stream s) { return engine.record(s, 0); }
  void wait(Stream s, Mark mark) { engine.wait(s, mark, 0); }
};

struct HandTarget {
  HandLoop& loop;
  using Device = std::uint32_t;
  using Stream = std::uint32_t;
  using Mark = std::uint32_t;
  Device device() { return loop.add_device(); }
  Stream stream(Device device) { return loop.add_stream(device); }
  void kernel(Stream s, sim::Time ns) { loop.activity(s, HandKind::kCompute, ns); }
  void down(Stream s, sim::Time ns) { loop.activity(s, HandKind::kDown, ns); }
  void up(Stream s, sim::Time ns) { loop.activity(s, HandKind::kUp, ns); }
  Mark record(Stream s) { return loop.record(s); }
  void wait(Stream s, Mark mark) { loop.wait(s, mark); }
};

// Number `index` of the SplitMix64 that begins at the seed.
inline std::uint64_t mix(std::uint64_t seed, std::uint64_t index) {
  return spread_bits(seed + (index + 1) * 0x9e3779b97f4a7c15);
}
inline std::int64_t kernel_ns(std::uint64_t seed, std::uint64_t i) {
  return 10'000 + static_cast<std::int64_t>(mix(seed, i) % 490'001);
}
inline std::int64_t copy_ns(std::uint64_t seed, std::uint64_t i) {
  return 50'000 + static_cast<std::int64_t>(mix(seed ^ 0x5bd1e995, i) % 900'001);
}

// The program of one pair of streams: forward() for each j from 1 to n / 2, then so backward().
template <class Target>
class OffloadStep {
 public:
  using Stream = typename Target::Stream;
  using Mark = typename Target::Mark;

  OffloadStep(Target target, Stream compute, Stream copies, std::uint64_t n, std::uint64_t seed)
      : target_(target), compute_(compute), copies_(copies), n_(n), seed_(seed) {}

  void forward(std::uint64_t j) {
    target_.kernel(compute_, kernel_ns(seed_, 2 * j - 1));
    target_.kernel(compute_, kernel_ns(seed_, 2 * j));
    target_.wait(copies_, target_.record(compute_));
    target_.down(copies_, copy_ns(seed_, j));
  }

  void backward(std::uint64_t j) {
    if (j > 4) target_.wait(copies_, slots_[j % 4]);
    target_.up(copies_, copy_ns(seed_, n_ / 2 + j));
    const Mark here = target_.record(copies_);
    target_.kernel(compute_, kernel_ns(seed_, n_ + 2 * j - 1));
    target_.wait(compute_, here);
    target_.kernel(compute_, kernel_ns(seed_, n_ + 2 * j));
    slots_[j % 4] = target_.record(compute_);
  }

 private:
  Target target_;
  Stream compute_;
  Stream copies_;
  std::uint64_t n_;
  std::uint64_t seed_;
  Mark slots_[4] = {};  // the last four B
};

struct Size {
  std::uint64_t n;  // of each pair
  std::uint64_t devices = 1;
  std::uint64_t pairs = 1;  // of streams, on each device
};

template <class Target>
void build_steps(Target target, const Size& size) {
  for (std::uint64_t d = 0; d < size.devices; ++d) {
    const auto device = target.device();
    std::vector<OffloadStep<Target>> pairs;
    for (std::uint64_t p = 0; p < size.pairs; ++p) {
      const auto compute = target.stream(device);
      const auto copies = target.stream(device);
      pairs.emplace_back(target, compute, copies, size.n, d * size.pairs + p);
    }
    for (std::uint64_t j = 1; j <= size.n / 2; ++j) {
      for (auto& pair : pairs) pair.forward(j);
    }
    for (std::uint64_t j = 1; j <= size.n / 2; ++j) {
      for (auto& pair : pairs) pair.backward(j);
    }
  }
}

inline void build(sim::Engine& engine, const Size& size) {
  build_steps(EngineTarget{engine}, size);
}
inline void build(HandLoop& loop, const Size& size) { build_steps(HandTarget{loop}, size); }

}  // namespace ferry::bench
