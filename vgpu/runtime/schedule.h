// When the work that streams were given runs, and the running of it.
//
// A stream's tempo decides, which control.h explains: at once, when the host waits for it, or some
// of it at each call. A tempo may be drawn from a seed. A stream takes up its tempo with the first
// work that it is given after the last set_tempo, so that equal programs meet equal tempos
// whichever streams they were given. Work that waits for a record runs once that record is done, at
// any tempo.
//
// Time is counted here for programs without a clock: a microsecond for each operation, and for each
// call into the runtime one of the host's, by which sleeping work wakes.
//
// There are no threads of its own: work runs on whatever thread calls, under the runtime's lock,
// which guards it all (runtime.h). So a body must not call the runtime. A body that throws breaks
// the device (faults.h), as a kernel that fails is the end of a CUDA context.
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

  // Of every stream, with its next work. Nothing is queued.
  void set_tempo(Tempo tempo, std::uint64_t seed);
  void set_tempo(Stream& stream, Tempo tempo);
  // The stream is about to be given work: it takes up its tempo, unless it has it already.
  void choose_tempo(Stream& stream);

  // Copies with pageable memory are staged (control.h).
  bool stages_pageable() const { return tempo_ != Tempo::kLazy && seed_ % 4 < 2; }
  // A host that asks again and again might never be told that work is done, but for its insisting.
  bool may_stall() const { return is_apart() || tempo_ == Tempo::kMixed; }

  void push(Stream& stream, Work work);  // runs nothing
  // The host calls the runtime: what sleeps may wake, and work of a random tempo may run.
  void host_calls();
  // Work of an eager tempo runs.
  void run_eager();

  // Only as much runs as it takes: what is to be finished, and what that waits for.
  void finish(Stream& stream);
  void finish(SnapshotRef snapshot);  // by value: what is queued goes as it runs
  void finish_device(int device);
  void finish_everything();

 private:
  enum class Ran : std::uint8_t { kNothing, kOne };
  // The stream's next work runs, if it can: in its own turn, or because the host waits for it.
  Ran run_one(Stream& stream, bool awaited);
  void run_body(const Work& work);
  void run_random();

  // Work that sleeps does so from when its turn comes until the host waits for it, or has called
  // long enough.
  void begin_sleep(Work& work) const;
  bool is_asleep(const Work& work) const { return entries_ < work.wakes_at; }
  void end_sleep(const Work& work);

  bool is_apart() const { return tempo_ == Tempo::kSideFirst || tempo_ == Tempo::kMainFirst; }
  std::uint64_t draw(std::uint64_t below);  // the next of the seed's numbers

  Streams& streams_;
  Faults& faults_;
  Tempo tempo_ = Tempo::kEager;
  std::uint64_t tempos_ = 0;  // calls of set_tempo
  std::uint64_t seed_ = 0;
  std::uint64_t draws_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t entries_ = 0;   // calls into the runtime: a microsecond of the host's each
  std::int64_t sleepers_ = 0;  // queued
};

}  // namespace ferry::vgpu
