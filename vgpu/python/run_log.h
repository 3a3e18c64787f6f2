// What the virtual GPU was asked for, as a stream log (formats/TRACE.md), for `ferry check`.
//
// Each line is in the file before the operation that it tells of goes on (lasting_file.h), so a
// process that is killed leaves all that it asked for. An operation is named by its operator and by
// its place in the program. Memory that is not page-locked is PyTorch's or the user's: its copies
// are written with addresses of their own, for nobody says what else is done with it. So no race on
// it is found, and none is made up.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/trace_write.h"
#include "vgpu/python/lasting_file.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {

class RunLog final : public Listener {
 public:
  // Throws std::system_error if the file cannot be written.
  explicit RunLog(const std::string& path);
  // What follows `earlier`, all of whose work is done and known to be: begins with the memory that
  // is allocated, and the views of it that the host has.
  RunLog(const std::string& path, const RunLog& earlier);

  void on(const StreamOp& op) override;
  void forget(Range) override {}  // addresses of device memory are not used twice
  void destroy_event(EventId event) override;
  // The file is whole for a reader. Throws std::system_error.
  void settle() { file_.settle(); }
  const std::string& path() const { return path_; }
  // Whether there was an operation, after what it began with.
  bool is_used() const { return used_; }

 private:
  struct LiveBlock {
    std::uint64_t bytes = 0;
    StreamId stream{};
    PoolKind pool = PoolKind::kCaching;
  };

  void begin_with(const RunLog& earlier);
  void hear(const StreamOp& op, const char* where);  // null: nobody knows
  void remember(const StreamOp& op);
  void declare(StreamId stream);
  void write(const StreamOp& op);
  void end_view(Range range);
  Range moved(Range range);

  std::string path_;
  LastingFile file_;
  bool used_ = false;
  TraceText text_;
  std::set<StreamId> declared_;
  std::map<std::uint64_t, std::uint64_t> pinned_;  // begin and end of each block
  std::map<std::uint64_t, LiveBlock> allocated_;   // by its address
  // By their bytes, with the place that each was handed out at.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::string>> views_;
  std::uint64_t pageable_;  // the next address
  std::vector<Range> reads_, writes_;
};

}  // namespace ferry::vgpu
