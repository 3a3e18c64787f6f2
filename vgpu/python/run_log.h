// Writes the operations that a program gives to the virtual GPU as a stream log
// (formats/STREAM_LOG.md). `ferry run` judges it, and `ferry check` can read it.
//
// Each line is in the file before its operation goes on (lasting_file.h), so a killed process
// leaves everything that it requested. An operation's name has its operator and its place in the
// program. Memory that is not page-locked belongs to PyTorch or the user. Its copies are written
// with addresses of their own, because nothing reports what else is done with it. So no race on it
// is found, and none is invented.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/stream_log_write.h"
#include "vgpu/python/lasting_file.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {

class RunLog final : public Listener {
 public:
  // Throws std::system_error if the file cannot be written.
  explicit RunLog(const std::string& path);
  // Follows `earlier`, whose work is all done and known to be done. The log begins with the memory
  // that is allocated and the views that the host has of it.
  RunLog(const std::string& path, const RunLog& earlier);

  void on(const StreamOp& op) override;
  void forget(Range) override {}  // addresses of device memory are not used twice
  void destroy_event(EventId event) override;
  // Makes the file complete for a reader. Throws std::system_error.
  void settle() { file_.settle(); }
  const std::string& path() const { return path_; }
  // Returns whether there was an operation after those that the log began with.
  bool is_used() const { return used_; }

 private:
  struct LiveBlock {
    std::uint64_t bytes = 0;
    StreamId stream{};
    PoolKind pool = PoolKind::kCaching;
  };

  void begin_with(const RunLog& earlier);
  void hear(const StreamOp& op, const char* where);  // null: the place is not known
  void remember(const StreamOp& op);
  void declare(StreamId stream);
  void write(const StreamOp& op);
  void end_view(Range range);
  Range moved(Range range);

  std::string path_;
  LastingFile file_;
  bool used_ = false;
  StreamLogText text_;
  std::set<StreamId> declared_;
  std::map<std::uint64_t, std::uint64_t> pinned_;  // begin and end of each block
  std::map<std::uint64_t, LiveBlock> allocated_;   // keyed by address
  // The places where views were handed out, by the bytes of the view.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::string>> views_;
  std::uint64_t pageable_;  // the next address for pageable memory
  std::vector<Range> reads_, writes_;
};

}  // namespace ferry::vgpu
