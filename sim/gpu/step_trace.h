// Writes what the streams of an engine did to a trace file (formats/kineto_file.h).
//
// The engine reports when work ends, but not what it is. So the code that gives it a kernel or a
// copy also names it here, before or after, in the order of each stream. A copy from the host is
// matched by its host address with the copy that went there.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/kineto_file.h"
#include "formats/stream_op.h"
#include "sim/gpu/engine.h"

namespace ferry::sim {

class StepTrace final : public TraceSink {
 public:
  explicit StepTrace(std::filesystem::path path) : file_(std::move(path)) {}

  void name_device(std::uint32_t device, std::string_view name) { file_.name_device(device, name); }
  // Call this before given().
  void add_stream(StreamId stream, std::uint32_t device, std::string_view name);
  // Names the stream's next kernel or copy. `host`: the host address of a copy from or to the host.
  void given(StreamId stream, std::string_view name, std::int64_t bytes = -1,
             std::uint64_t host = 0);
  void completed(const CompletedOp& op) override;
  // Bytes were allocated (positive) or freed (negative).
  void allocated(std::uint32_t device, Time at, std::int64_t change);
  // Call this when everything is done. The file exists only afterwards.
  void commit() { file_.commit(); }

 private:
  struct Given {
    std::string name;
    std::int64_t bytes = -1;
    std::uint64_t host = 0;
  };
  struct Stream {
    std::uint32_t device = 0;
    std::deque<Given> given;
    std::deque<CompletedOp> completed;  // not yet named
  };

  Stream& of(StreamId stream);
  void write(Stream& stream);

  KinetoFile file_;
  std::vector<Stream> streams_;
  std::map<std::uint32_t, std::int64_t> allocated_;  // by device
  struct Out {
    KinetoSpan span;  // without its name
    std::uint64_t flow = 0;
  };
  std::map<std::uint64_t, Out> out_;  // copies to the host, by host address
  std::uint64_t flows_ = 0;
};

}  // namespace ferry::sim
