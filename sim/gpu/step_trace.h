// What the streams of an engine did, as a trace file (formats/kineto_file.h).
//
// The engine tells when work ends, and not what it is: whoever gives it a kernel or a copy says
// that here, before or after, in each stream's order. Bytes that go to the host and come back are
// known by the host's address.
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
  // Before anybody says what it was given.
  void add_stream(StreamId stream, std::uint32_t device, std::string_view name);
  // Its next kernel or copy. `host`: of a copy from or to the host, where.
  void given(StreamId stream, std::string_view name, std::int64_t bytes = -1,
             std::uint64_t host = 0);
  void completed(const CompletedOp& op) override;
  // Bytes given out, or taken back.
  void allocated(std::uint32_t device, Time at, std::int64_t change);
  // Once everything is done. The file is there afterwards, and not before.
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
    std::deque<CompletedOp> completed;  // before somebody said what it is
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
  std::map<std::uint64_t, Out> out_;  // what went to the host, by address
  std::uint64_t flows_ = 0;
};

}  // namespace ferry::sim
