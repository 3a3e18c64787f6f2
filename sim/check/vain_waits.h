// Finds waits of the core that order nothing: a stream waits for its own work. Such a wait does no
// harm, so no other checker reports it. For ferry verify it is a mistake of the core. Waits without
// a step of the core are not judged.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "formats/stream_op.h"

namespace ferry::check {

// Watches one run, from its first operation on.
class VainWaits final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override;

  // Empty if there was no such wait. Otherwise the latest one.
  const std::string& complaint() const { return complaint_; }

 private:
  std::unordered_map<std::uint32_t, StreamId> recorded_;  // by event id: who recorded it
  std::string complaint_;
};

}  // namespace ferry::check
