// Records what a machine's first device does in the last step (run_record.h): what it is given,
// when that runs, and what its memory is for.
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

  // The machine has issued nothing yet, and is recorded until end(), where all its work is done.
  // What was recorded before is dropped.
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
    std::deque<std::size_t> work;     // given, and not known to be done
    std::deque<std::size_t> waits;    // likewise
    std::deque<CompletedOp> done;     // before it was told what it is
    std::deque<CompletedOp> waited;   // likewise
    std::optional<std::size_t> last;  // work given in this step
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
  std::vector<std::optional<std::size_t>> events_;  // the work that a wait for each waits for
  std::map<std::string, std::uint32_t, std::less<>> names_;
  std::map<std::uint64_t, Live> live_;  // by identity
};

}  // namespace ferry::sim
