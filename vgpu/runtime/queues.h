// Gives work, records and waits to streams. A call of the program goes through here to the stream's
// queue, to the clock and, where the runtime itself orders streams, to the log.
//
//     blocking streams     legacy stream        blocking streams
//
//     record ───────────▶ wait
//                         the work it is given
//                         record ─────────────▶ wait
//
// A kernel or copy of the legacy default stream waits for all work that its device's blocking
// streams have, and their later work waits for it. The log has these records and waits with events
// that no program has. A record or a wait of the program's own on the legacy stream orders no other
// stream: in CUDA only the default stream's work does.
//
// The runtime's lock guards the class (runtime.h); any thread of the program may call it. It owns
// nothing. schedule.h decides when queued work runs. Not modelled: priorities, and how many streams
// a card runs at the same time.
#pragma once

#include <cstdint>

#include "vgpu/runtime/card_time.h"
#include "vgpu/runtime/events.h"
#include "vgpu/runtime/log.h"
#include "vgpu/runtime/schedule.h"
#include "vgpu/runtime/streams.h"

namespace ferry::vgpu {

class Queues {
 public:
  Queues(Streams& streams, Schedule& schedule, Events& events, Log& log, CardTime& time)
      : streams_(streams), schedule_(schedule), events_(events), log_(log), time_(time) {}
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  void enqueue(Stream& stream, Work work);
  void sleep(Stream& stream, std::int64_t microseconds);
  SnapshotRef record(Stream& stream);
  void wait(Stream& stream, const SnapshotRef& snapshot);
  // Makes later work of `later` wait for all work of `earlier` so far. If `earlier` was destroyed,
  // its work runs now, because nothing else would run it.
  void order(StreamId earlier, Stream& later);

 private:
  void order(Stream& earlier, Stream& later);
  enum class Side : std::uint8_t { kBefore, kAfter };
  // Called around work of the legacy stream: kBefore makes it wait for the blocking streams, kAfter
  // makes them wait for it.
  void join_blocking(Stream& stream, Side side);

  Streams& streams_;
  Schedule& schedule_;
  Events& events_;
  Log& log_;
  CardTime& time_;
};

}  // namespace ferry::vgpu
