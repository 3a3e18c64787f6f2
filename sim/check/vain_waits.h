// Finds waits of the core's that order nothing: those of a stream for its own work.
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

  // Empty where there is nothing to complain of.
  const std::string& complaint() const { return complaint_; }

 private:
  std::unordered_map<std::uint32_t, StreamId> recorded_;  // where each event was, by its number
  std::string complaint_;
};

}  // namespace ferry::check
