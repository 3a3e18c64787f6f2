// What an event's record holds: the work that a stream was given until then, and whether it is
// done.
//
// A snapshot is done when its stream has run all of that work (schedule.h). Where the runtime has a
// clock, the snapshot owns one of the clock's marks for the same work, which it gives back at its
// end. Events, and the work that waits for the snapshot, share it.
//
// Without a clock there is a time as well, so that events lie apart: the schedule counts a
// microsecond for each operation, and says when the snapshot was done.
//
// The runtime's lock guards it (runtime.h). A snapshot does not own its stream, which stays where
// it is until the process ends (streams.h).
#pragma once

#include <cstdint>
#include <memory>

#include "vgpu/runtime/clock.h"

namespace ferry::vgpu {

struct Stream;

class Snapshot {
 public:
  Snapshot(Stream& stream, Clock* clock);  // or null
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  Stream& stream() const { return *stream_; }
  bool is_done() const { return is_done_; }

  // The stream has come to it.
  void complete(std::int64_t now_ns);
  // What the stream is given from now on waits for it, on the card.
  void hold_up(const Stream& waiting) const;
  // The host waits for it, on the card.
  void host_waits() const;
  // The host asks the clock, which takes the host some time. There is one.
  Clock::Answer host_asks() const;
  // When it was done. The clock goes on until then, where there is one.
  std::int64_t run_to_end() const;

 private:
  Stream* stream_;
  Clock* clock_;
  Clock::Mark mark_{};
  bool is_done_ = false;
  std::int64_t done_ns_ = 0;
};
using SnapshotRef = std::shared_ptr<Snapshot>;

}  // namespace ferry::vgpu
