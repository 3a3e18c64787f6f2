// Finds the peak of a device's allocated memory in a stream log, and which operators made it.
//
// A block belongs to the first operation that writes into it, because allocators request memory
// before they know for what. A block that nothing wrote to belongs to its allocation. Names are
// those of the log: `ferry run` writes the operator and its place ("aten::mm at train.py:12 in
// step"). Blocks that lie in a block of another pool would count twice, so the memory of plain
// cudaMalloc counts only in logs that have no other.
//
// Memory grows with the blocks that are allocated at a time. A log has no times, so a moment is the
// number of an operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/line_source.h"
#include "formats/stream_op.h"

namespace ferry::peak {

struct LogOwner {
  std::string what;   // "aten::mm"; empty: no operation wrote to it
  std::string place;  // "train.py:12 in step"; empty: the log has none
  std::int64_t bytes = 0;
  std::uint64_t blocks = 0;
  // Of these blocks, those that operations used, but none after the peak.
  std::int64_t done_bytes = 0;
};

struct LogPeak {
  std::uint32_t device = 0;  // with the largest peak
  std::size_t devices = 0;   // with allocated memory; 0: the log allocates nothing
  std::int64_t bytes = 0;
  std::uint64_t operation = 0;     // that reached it; operations count from 1
  std::uint64_t operations = 0;    // in the log
  std::vector<LogOwner> owners{};  // largest first
};

// The log's operations go in, in their order, and the peak comes out.
class LogPeakFinder final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override;
  LogPeak peak() const;

 private:
  struct WrittenBlock {
    std::uint64_t end = 0;
    std::uint64_t allocated = 0;  // the number of the operation
    std::uint64_t used = 0;       // the number of the last operation that used it
    std::uint32_t owner = 0;      // in names_
    bool written = false;
  };
  // The blocks of one pool on one device.
  struct Pool {
    std::int64_t now = 0;
    std::int64_t most = 0;
    std::uint64_t most_at = 0;
    // Blocks of the peak that were freed since, with their addresses.
    std::vector<std::pair<std::uint64_t, WrittenBlock>> gone;
  };
  struct Live {
    WrittenBlock block;
    Pool* pool = nullptr;
  };

  void allocate(const StreamOp& op);
  void free(std::uint64_t address);
  void use(Range range, bool writes, std::string_view name);
  std::uint32_t number_of(std::string_view name);
  LogPeak described(std::uint32_t device, const Pool& pool) const;

  std::uint64_t operations_ = 0;
  std::map<StreamId, std::uint32_t> devices_;  // of streams that are declared
  // Pools by device. Those of plain cudaMalloc are apart.
  std::map<std::uint32_t, Pool> pools_, plain_;
  std::map<std::uint64_t, Live> live_, live_plain_;  // by address
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
};

// Reads a whole log. Throws InputError where a line is malformed.
LogPeak peak_of_log(LineSource& lines);

}  // namespace ferry::peak
