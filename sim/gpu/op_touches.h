// Reports to a run's choices what the operations of each turn touch (sim/choices/turn_orders.h).
//
// An operation writes its stream, because the operations of a stream keep their order. A wait reads
// the record that it waits for. Memory is touched by storage. An allocation or a free writes its
// pool, because the block that a pool hands out depends on earlier requests. The core's own objects
// are not reported: each belongs to one stage or one micro-batch, or passes on tensors, which are
// reported.
#pragma once

#include <cstdint>
#include <map>

#include "formats/stream_op.h"
#include "sim/choices/choices.h"

namespace ferry::sim {

class OpTouches final : public StreamOpConsumer {
 public:
  explicit OpTouches(choices::Choices& choices) : choices_(choices) {}
  void operator()(const StreamOp& op) override;

 private:
  // A storage. Storages are numbered within their pool, and records within their stream.
  struct Numbered {
    std::uint64_t end = 0;
    std::uint64_t number = 0;
  };
  static std::uint64_t pool_of(std::uint64_t address);
  void touch_bytes(Range range, choices::Access access);
  void allocated(const StreamOp& op);

  choices::Choices& choices_;
  std::map<std::uint64_t, Numbered> storages_;     // by address
  std::map<std::uint64_t, std::uint64_t> counts_;  // number of storages, by pool
  std::map<StreamId, std::uint64_t> records_;      // number of records, by stream
  std::map<EventId, std::uint64_t> last_record_;   // its number, by event
};

}  // namespace ferry::sim
