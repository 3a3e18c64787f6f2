// The record of an event: the work that a stream had been given by then, and whether it is done.
//
// A snapshot is done when its stream has run all of that work (schedule.h). If the runtime has a
// clock, the snapshot owns one of the clock's marks for the same work, and its destructor releases
// the mark. Events, and the work that waits for the snapshot, share the snapshot.
//
// Without a clock there is a time as well, so that the time between two events is not zero: the
// schedule counts a microsecond for each operation, and says when the snapshot was done.
//
// The runtime's lock guards the class (runtime.h). A snapshot does not own its stream, which lives
// until the process ends (streams.h).
#pragma once

#include <cstdint>
#include <memory>

#include "vgpu/runtime/clock.h"

namespace ferry::vgpu {

struct Stream;

class Snapshot {
 public:
  Snapshot(Stream& stream, Clock* clock);  // the clock may be null
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  Stream& stream() const { return *stream_; }
  bool is_done() const { return is_done_; }

  // The stream has run all work of the snapshot.
  void complete(std::int64_t now_ns);
  // On the card, later work of the stream waits for the snapshot.
  void hold_up(const Stream& waiting) const;
  // On the card, the host waits for the snapshot.
  void host_waits() const;
  // The host queries the clock, which takes the host some time. There must be a clock.
  Clock::Answer host_asks() const;
  // Returns when the snapshot was done, in nanoseconds. If there is a clock, it runs until then.
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
