// What streams are given: work, records of it, and waits for records. What the program calls goes
// through here to the stream's queue, to the clock and, where streams meet by themselves, to the
// log.
//
//     blocking streams     legacy stream        blocking streams
//
//     record ───────────▶ wait
//                         the work it is given
//                         record ─────────────▶ wait
//
// A kernel or copy of the legacy default stream waits for all that its device's blocking streams
// were given, and they wait for it. The log has these records and waits as events of no program.
// A record or a wait of the program's joins nothing: CUDA gives the default stream its order by its
// work alone.
//
// The runtime's lock guards it (runtime.h), and any thread of the program calls. It owns nothing.
// What it enqueues runs when schedule.h says so. Not modelled: priorities, and how many streams a
// card runs beside each other.
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
  // What `later` is given from now on waits for all that `earlier` has been given. A stream that is
  // gone runs it now, as nobody else would.
  void order(StreamId earlier, Stream& later);

 private:
  void order(Stream& earlier, Stream& later);
  enum class Side : std::uint8_t { kBefore, kAfter };
  // The legacy stream is given work: before it, what it waits for; after it, what waits for it.
  void join_blocking(Stream& stream, Side side);

  Streams& streams_;
  Schedule& schedule_;
  Events& events_;
  Log& log_;
  CardTime& time_;
};

}  // namespace ferry::vgpu
