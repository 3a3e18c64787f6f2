// Writes a simulated run as a stream log for `ferry check`: every operation that a machine of one
// device issues. A stream is declared at its first operation, and named by stream_name().
//
// Host memory is moved to kLoggedHost, because a log's addresses end at 2^59 and the machine's do
// not.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/stream_log_write.h"
#include "sim/gpu/machine.h"

namespace ferry::sim {

inline constexpr std::uint64_t kLoggedHost = std::uint64_t{1} << 58;

// Names follow the order in which a lone device makes its streams: "compute", "d2h", "h2d",
// "compute 1" …
std::string stream_name(StreamId stream);

class StreamLog final : public StreamOpConsumer {
 public:
  explicit StreamLog(StreamLogFile& file);  // the file must outlive it
  // `sink` gets each line with its end, valid during the call.
  explicit StreamLog(std::function<void(std::string_view line)> sink);
  // Throws std::system_error if the file cannot be written.
  void operator()(const StreamOp& op) override;

 private:
  void meet(StreamId stream);

  StreamLogText text_;
  std::function<void(std::string_view line)> sink_;
  std::vector<bool> met_;  // by stream: declared already
  std::vector<Range> reads_, writes_;
};

}  // namespace ferry::sim
