// Decides when queued work runs, and runs it.
//
// A stream's tempo decides (control.h explains them): its work runs at once, when the host waits
// for it, or some of it at each call. A seed may pick the tempo. A stream takes its tempo when it
// gets its first work after the last set_tempo. So equal programs get equal tempos, whichever
// stream handles they were given. Work that waits for a record runs once that record is done, at
// any tempo.
//
// This class also counts time for programs without a clock: a microsecond for each operation. Each
// call into the runtime counts as a microsecond of the host's time, which wakes sleeping work.
//
// There are no threads of its own: work runs on whichever thread calls, under the runtime's lock,
// which guards the class (runtime.h). So a body must not call the runtime. A body that throws
// breaks the device (faults.h), as a failing kernel ends a CUDA context.
#pragma once

#include <cstdint>

#include "vgpu/runtime/control.h"
#include "vgpu/runtime/faults.h"
#include "vgpu/runtime/snapshot.h"
#include "vgpu/runtime/streams.h"

namespace ferry::vgpu {

class Schedule {
 public:
  Schedule(Streams& streams, Faults& faults) : streams_(streams), faults_(faults) {}
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Sets the tempo of every stream, from its next work on. Nothing may be queued.
  void set_tempo(Tempo tempo, std::uint64_t seed);
  void set_tempo(Stream& stream, Tempo tempo);
  // The stream is about to get work: it takes its tempo, unless it already has.
  void choose_tempo(Stream& stream);

  // Returns whether copies with pageable memory are staged (control.h).
  bool stages_pageable() const { return tempo_ != Tempo::kLazy && seed_ % 4 < 2; }
  // Returns whether some tempo might never answer the host's query, so that repeated queries must
  // run the work.
  bool may_stall() const { return is_apart() || tempo_ == Tempo::kMixed; }

  void push(Stream& stream, Work work);  // does not run it
  // The host calls the runtime: sleeping work may wake, and work of a random tempo may run.
  void host_calls();
  // Runs the work of eager streams, as far as it can run.
  void run_eager();

  // These run the work that is to be finished and what that work waits for. Under `side first` and
  // `main first`, eager streams go on meanwhile.
  void finish(Stream& stream);
  void finish(SnapshotRef snapshot);  // takes a copy: queued references go away
  void finish_device(int device);
  void finish_everything();

 private:
  enum class Ran : std::uint8_t { kNothing, kOne };
  // Runs the stream's next work if it can: in its own turn, or because the host waits for it.
  Ran run_one(Stream& stream, bool awaited);
  void run_body(const Work& work);
  void run_random();

  // Work that sleeps begins to sleep when it is next in its stream. It wakes when the host waits
  // for it, or has called the runtime often enough.
  void begin_sleep(Work& work) const;
  bool is_asleep(const Work& work) const { return entries_ < work.wakes_at; }
  void end_sleep(const Work& work);

  bool is_apart() const { return tempo_ == Tempo::kSideFirst || tempo_ == Tempo::kMainFirst; }
  std::uint64_t draw(std::uint64_t below);  // the seed's next random number

  Streams& streams_;
  Faults& faults_;
  Tempo tempo_ = Tempo::kEager;
  std::uint64_t tempos_ = 0;  // calls of set_tempo
  std::uint64_t seed_ = 0;
  std::uint64_t draws_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t entries_ = 0;   // calls into the runtime, each a microsecond of the host
  std::int64_t sleepers_ = 0;  // queued work that sleeps
};

}  // namespace ferry::vgpu
