// Records what a machine's first device does in the last step (run_record.h): the work that it
// gets, when that runs, and what its memory is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/stream_op.h"
#include "sim/gpu/engine.h"
#include "sim/gpu/machine.h"
#include "sim/gpu/run_record.h"

namespace ferry::sim {

class RunRecorder final : public StreamOpConsumer, public TraceSink, public MemoryWatch {
 public:
  RunRecorder() = default;
  RunRecorder(const RunRecorder&) = delete;
  RunRecorder& operator=(const RunRecorder&) = delete;

  // Records from begin() to end(). At begin() the machine must not have issued anything; at end()
  // all its work must be done. begin() drops what was recorded before.
  void begin(Machine& machine);
  void end();
  const RunRecord& record() const { return record_; }

  void operator()(const StreamOp& op) override;
  void completed(const CompletedOp& op) override;
  void allocated(const StorageImpl& storage) override;
  void freed(const StorageImpl& storage) override;
  void changed_kind(const StorageImpl& storage, MemoryKind before) override;
  void peaks_reset() override;  // a step begins

 private:
  struct Stream {
    std::deque<std::size_t> work;     // given, but not yet known to be done
    std::deque<std::size_t> waits;    // likewise
    std::deque<CompletedOp> done;     // done, but it is not yet known what it is
    std::deque<CompletedOp> waited;   // likewise
    std::optional<std::size_t> last;  // latest work given in this step
  };
  struct Live {
    MemoryKind kind{};
    std::uint32_t place = 0;
    std::int64_t bytes = 0;
  };

  Stream& of(StreamId stream);
  void match(Stream& stream);
  std::uint32_t name(std::string_view text);
  void change(MemoryChange change, const StorageImpl& storage, MemoryKind before);

  Machine* machine_ = nullptr;
  RunRecord record_;
  Time began_ = 0;
  std::vector<Stream> streams_;
  std::vector<std::optional<std::size_t>> events_;  // for each event, the work that it stands for
  std::map<std::string, std::uint32_t, std::less<>> names_;
  std::map<std::uint64_t, Live> live_;  // by identity
};

}  // namespace ferry::sim
