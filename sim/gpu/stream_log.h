// A simulated run as a stream log, for `ferry check`: writes every operation that a machine of one
// device issues. Streams are declared when they are first met, and called as stream_name() says.
//
// Host memory lies at kLoggedHost, for a log's addresses end at 2^59 and the machine's do not.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace_write.h"
#include "sim/gpu/machine.h"

namespace ferry::sim {

inline constexpr std::uint64_t kLoggedHost = std::uint64_t{1} << 58;

// Follows the order in which a lone device makes them: "compute", "d2h", "h2d", "compute 1" …
std::string stream_name(StreamId stream);

class StreamLog final : public StreamOpConsumer {
 public:
  explicit StreamLog(TraceFile& file);  // the file must outlive it
  // Each line with its end, valid during the call.
  explicit StreamLog(std::function<void(std::string_view line)> sink);
  // Throws std::system_error if the file cannot be written.
  void operator()(const StreamOp& op) override;

 private:
  void meet(StreamId stream);

  TraceText text_;
  std::function<void(std::string_view line)> sink_;
  std::vector<bool> met_;  // by stream: declared already
  std::vector<Range> reads_, writes_;
};

}  // namespace ferry::sim
