// Tells the choices of a run what the operations of each turn touch (sim/choices/turn_orders.h).
//
// An operation writes its stream: what a stream is given keeps its order. A wait reads the record
// that it waits for. Memory is touched by the storage, and its pool by whoever takes or gives back:
// which block a pool hands out depends on what it was asked before. The core's own objects are not
// seen here: each belongs to one stage or one micro-batch, or hands on tensors, which are.
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
  // Numbers of a pool's storages, and of a stream's records, are in one row each.
  struct Numbered {
    std::uint64_t end = 0;
    std::uint64_t number = 0;
  };
  static std::uint64_t pool_of(std::uint64_t address);
  void touch_bytes(Range range, choices::Access access);
  void allocated(const StreamOp& op);

  choices::Choices& choices_;
  std::map<std::uint64_t, Numbered> storages_;     // by address
  std::map<std::uint64_t, std::uint64_t> counts_;  // of storages, by pool
  std::map<StreamId, std::uint64_t> records_;      // counts, by stream
  std::map<EventId, std::uint64_t> last_record_;   // its number
};

}  // namespace ferry::sim
