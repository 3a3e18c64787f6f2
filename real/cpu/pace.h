// Controls the timing of the tasks of worker streams. It is an interface for tests.
//
// Without a pace, a worker runs its tasks as soon as it can. A pace changes that within the
// contracts of streams and events: it may hold a task until somebody waits for it, or let it run
// before the thread that gave it goes on. With one host thread, and no task left to natural timing,
// the pace determines the whole schedule. So a missing wait gives wrong bytes every time.
//
// Somebody waits for a task when the host waits for an event after it, when another awaited task is
// ordered after it, when the device is finished or destroyed, or when memory is short and the pool
// waits for it.
#pragma once

#include <cstdint>

namespace ferry::real {

enum class Timing : std::uint8_t {
  kFree,      // runs when its worker gets to it
  kOnDemand,  // not before somebody waits for it, or for a later task of its stream
  kAtOnce,    // it and all earlier tasks run before the giving thread goes on
};

class Pace {
 public:
  virtual ~Pace() = default;
  // Called once for each task, when the task is given. `stream` is the number of its worker in
  // order of creation: 0 and 1 are the lanes to the host and back, and 3 is the first of
  // CpuDevice::new_stream. `ordinal` counts from 1. It is called under the device's lock and must
  // not call the device.
  virtual Timing timing(std::int32_t stream, std::uint64_t ordinal) noexcept = 0;
};

// Runs everything as late as possible.
class LazyPace final : public Pace {
 public:
  Timing timing(std::int32_t, std::uint64_t) noexcept override { return Timing::kOnDemand; }
};

// Runs everything as early as possible.
class EagerPace final : public Pace {
 public:
  Timing timing(std::int32_t, std::uint64_t) noexcept override { return Timing::kAtOnce; }
};

// Runs the chosen streams as late as possible and the others as early. Bit i stands for stream i.
class ChosenPace final : public Pace {
 public:
  explicit ChosenPace(std::uint64_t late) : late_(late) {}
  Timing timing(std::int32_t stream, std::uint64_t) noexcept override {
    return (late_ >> static_cast<unsigned>(stream) & 1U) != 0 ? Timing::kOnDemand : Timing::kAtOnce;
  }

 private:
  std::uint64_t late_;
};

// Runs each task late or early, at random by the seed. Equal seeds give equal schedules.
class RandomPace final : public Pace {
 public:
  explicit RandomPace(std::uint64_t seed) : seed_(seed) {}
  Timing timing(std::int32_t stream, std::uint64_t ordinal) noexcept override {
    // splitmix64 (Steele, Lea and Flood, 2014) of seed, stream and ordinal.
    std::uint64_t x = seed_ + 0x9e3779b97f4a7c15U * (ordinal * 64 + static_cast<unsigned>(stream));
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return ((x ^ (x >> 31U)) & 1U) != 0 ? Timing::kOnDemand : Timing::kAtOnce;
  }

 private:
  std::uint64_t seed_;
};

}  // namespace ferry::real
