// CUDA graphs: captures of streams, and what a replay issues.
//
// While a stream captures, its work does not run. Each call becomes a node of the graph, with the
// operation for the log and the work for the queue. A stream that waits for an event of the capture
// joins it, and must be joined to the first stream before the capture ends.
//
//     origin   ──node── record e ──────────────── wait f ──node── end
//                          │                         ▲
//     other                └─▶ wait e ──node── record f
//
// A replay issues the nodes again, in the order of the capture: those of the first stream on the
// stream of the launch, those of each other stream on a stream that belongs to the executable
// graph. Records and waits get events that no program has, as those of the legacy default stream
// (queues.h).
//
// The runtime's lock guards the class (runtime.h). It owns the captures that are under way. The
// program owns its graphs and executable graphs, and destroys them.
//
// Which kernels compute under --no-values is decided at the capture (known_values.h).
//
// Not modelled: capture modes (a call that a mode forbids is let through, if it names no capturing
// stream), graphs that are made node by node, updates of executable graphs, conditional nodes, and
// that nodes of one stream may run at the same time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "formats/stream_op.h"
#include "vgpu/runtime/events.h"
#include "vgpu/runtime/streams.h"

namespace ferry::vgpu {

struct GraphNode {
  enum class Is : std::uint8_t { kWork, kRecord, kWait };
  Is is = Is::kWork;
  StreamId stream{};  // of the capture
  // kWork: what the log gets (its spans are `reads` and `writes`) and what runs.
  StreamOp op;
  bool is_logged = false;
  std::vector<Range> reads, writes;
  Work work;
  std::size_t event = 0;        // kRecord, kWait: the number of the record
  const char* place = nullptr;  // in the program (control.h)
};

struct Graph {
  GraphId id{};
  int device = 0;
  std::vector<StreamId> streams;  // the first one began the capture
  std::vector<GraphNode> nodes;
  std::uint32_t logged = 0;  // nodes that the log gets
};

// An executable graph.
struct GraphExec {
  std::shared_ptr<const Graph> graph;
  std::vector<Stream*> others;  // a stream for each stream of the graph but the first
};

class Graphs {
 public:
  Graphs() = default;
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  // Each returns the error with which the call fails.
  cudaError_t begin(const Stream& origin);
  // Sets `graph` on success. The capture is over in either case, unless `origin` did not begin one.
  cudaError_t end(const Stream& origin, std::shared_ptr<const Graph>& graph);

  // The graph whose capture the stream is part of; null if it captures nothing.
  const Graph* of(const Stream& stream) const;
  bool is_valid(const Stream& stream) const;  // no call has spoiled the stream's capture
  // A call that no capture allows was made on the stream.
  void spoil(const Stream& stream);

  // The stream captures. Adds a node; `op` may be null. Returns the operation as the log gets it
  // now, valid until the next node is added.
  const StreamOp* add(const Stream& stream, const StreamOp* op, Work work, const char* place);
  void record(const Stream& stream, Event& event);
  // The stream waits for an event; one of the two is of a capture.
  cudaError_t wait(const Stream& stream, const Event& event);
  // True if the event's latest record is part of a capture that is under way.
  bool is_captured(const Event& event) const { return find(event) != nullptr; }

 private:
  // How many nodes of each stream come before something.
  using Reach = std::map<StreamId, std::size_t>;
  struct Capture {
    std::shared_ptr<Graph> graph;
    bool valid = true;
    std::map<StreamId, Reach> reach;         // of each stream's latest node
    std::vector<Reach> records;              // of each record
    std::map<StreamId, std::size_t> counts;  // nodes with work
  };
  Capture* find(const Stream& stream) const;
  Capture* find(const Event& event) const;
  static bool is_joined(const Capture& capture);

  std::vector<std::unique_ptr<Capture>> captures_;
  std::uint32_t next_id_ = 1;
};

}  // namespace ferry::vgpu
