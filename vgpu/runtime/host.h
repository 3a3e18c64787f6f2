// The program's host, as the runtime knows it: what it waits for, and what it asks.
//
// To wait runs what is waited for, whatever its tempo (schedule.h), and moves the host's time on to
// the end of it. To ask has an effect as well: it takes the host some time, and a host that asks
// long enough is answered in the end where a tempo alone might never do so. So `ask` is a deed with
// an answer. Where the answer is that the work is done, the host has waited for it.
//
// With a clock that answers, work is done when it would be on the card; otherwise when its stream
// has come to run it.
//
// The runtime's lock guards it (runtime.h), and any thread of the program calls. All threads are
// one host: the patience of one is that of all. It owns nothing, and tells the log only of a device
// that is waited for; an entry point tells what it waited for itself.
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
  // It waits for all streams of the device, which is told.
  void synchronize_device(int device);

 private:
  void count_question();
  bool is_impatient() const;  // it has asked so often that what it asks for runs

  Streams& streams_;
  Schedule& schedule_;
  Log& log_;
  CardTime& time_;
  std::int64_t asked_ = 0;  // where a tempo decides that might never answer
};

}  // namespace ferry::vgpu
