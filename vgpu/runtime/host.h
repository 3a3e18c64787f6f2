// The program's host, as the runtime sees it: its waits and its queries.
//
// A wait runs the awaited work, whatever its tempo (schedule.h), and moves the host's time to the
// end of that work. A query has effects as well: it takes some host time, and a host that queries
// often enough gets the work run, which a tempo alone might never do. So `ask` is not const. If the
// answer is that the work is done, the host has waited for it.
//
// With a clock that answers, work is done when it would be done on the card. Otherwise it is done
// when its stream has run it.
//
// The runtime's lock guards the class (runtime.h); any thread of the program may call it. All
// threads count as one host, and their queries are counted together. It owns nothing. It logs only
// the wait for a device; entry points log their other waits themselves.
#pragma once

#include <cstdint>

#include "vgpu/runtime/card_time.h"
#include "vgpu/runtime/log.h"
#include "vgpu/runtime/schedule.h"
#include "vgpu/runtime/streams.h"

namespace ferry::vgpu {

class Host {
 public:
  using Answer = Clock::Answer;

  Host(Streams& streams, Schedule& schedule, Log& log, CardTime& time)
      : streams_(streams), schedule_(schedule), log_(log), time_(time) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void await(Stream& stream);
  void await(const SnapshotRef& snapshot);
  Answer ask(Stream& stream);
  Answer ask(const SnapshotRef& snapshot);
  // Waits for all streams of the device, and logs that.
  void synchronize_device(int device);

 private:
  void count_question();
  bool is_impatient() const;  // the host has queried so often that the work runs

  Streams& streams_;
  Schedule& schedule_;
  Log& log_;
  CardTime& time_;
  std::int64_t asked_ = 0;  // queries under a tempo that might never answer
};

}  // namespace ferry::vgpu
