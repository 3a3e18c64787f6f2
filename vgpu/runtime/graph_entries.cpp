// The entry points of CUDA's runtime for graphs (graphs.h): captures of streams, executable graphs,
// and their launches.
//
// A launch issues the work of all nodes, which costs the host one launch. Its place in the program
// is the place of each node at the capture, because a report should name the operator.
#include <algorithm>
#include <utility>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

using GraphRef = std::shared_ptr<const Graph>;

GraphRef& graph_of(cudaGraph_t handle) { return *reinterpret_cast<GraphRef*>(handle); }
GraphExec& exec_of(cudaGraphExec_t handle) { return *reinterpret_cast<GraphExec*>(handle); }

// Issues the nodes on the streams of the launch.
class Replay {
 public:
  Replay(Runtime& runtime, const GraphExec& exec, Stream& on) : runtime_(runtime), exec_(exec) {
    const std::vector<StreamId>& streams = exec.graph->streams;
    streams_[streams.front()] = &on;
    for (std::size_t i = 1; i < streams.size(); ++i) streams_[streams[i]] = exec.others[i - 1];
  }

  void run(Stream& on) {
    runtime_.time().begin_graph(on.id, on.device);
    for (Stream* other : exec_.others) runtime_.queues().order(on.id, *other);
    const char* const place = thread().place;
    for (const GraphNode& node : exec_.graph->nodes) {
      thread().place = node.place != nullptr ? node.place : place;
      issue(node, *streams_.at(node.stream));
    }
    thread().place = place;
    for (const Stream* other : exec_.others) runtime_.queues().order(other->id, on);
    runtime_.time().end_graph();
  }

 private:
  struct Record {
    EventId event{};
    SnapshotRef snapshot;
  };

  void issue(const GraphNode& node, Stream& stream) {
    switch (node.is) {
      case GraphNode::Is::kWork:
        if (node.is_logged) {
          StreamOp op = node.op;
          op.stream = stream.id;
          op.reads = node.reads;
          op.writes = node.writes;
          op.captured = false;
          runtime_.log().tell(op);
        }
        return runtime_.queues().enqueue(stream, node.work);
      case GraphNode::Is::kRecord: {
        Record& record = records_[node.event];
        record.event = runtime_.events().take_id();
        tell(StreamOpKind::kRecord, record.event, stream);
        record.snapshot = runtime_.queues().record(stream);
        return;
      }
      case GraphNode::Is::kWait: {
        const Record& record = records_.at(node.event);
        tell(StreamOpKind::kWait, record.event, stream);
        return runtime_.queues().wait(stream, record.snapshot);
      }
    }
  }

  void tell(StreamOpKind kind, EventId event, const Stream& stream) {
    StreamOp op;
    op.kind = kind;
    op.stream = stream.id;
    op.event = event;
    runtime_.log().tell(op);
  }

  Runtime& runtime_;
  const GraphExec& exec_;
  std::map<StreamId, Stream*> streams_;
  std::map<std::size_t, Record> records_;
};

cudaError_t instantiate(Runtime& runtime, cudaGraphExec_t* handle, cudaGraph_t graph) {
  auto exec = std::make_unique<GraphExec>();
  exec->graph = graph_of(graph);
  const int device = exec->graph->device;
  for (std::size_t i = 1; i < exec->graph->streams.size(); ++i) {
    exec->others.push_back(runtime.streams().create(device, false, 0));
  }
  runtime.freed().keep();
  *handle = reinterpret_cast<cudaGraphExec_t>(exec.release());
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  VGPU_ENTER();
  Stream& origin = runtime.streams().use(stream);
  if (runtime.streams().is_legacy(origin)) return fail_with(cudaErrorStreamCaptureUnsupported);
  const cudaError_t error = runtime.graphs().begin(origin);
  return error == cudaSuccess ? error : fail_with(error);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  VGPU_ENTER();
  *graph = nullptr;
  GraphRef made;
  const cudaError_t error = runtime.graphs().end(runtime.streams().use(stream), made);
  if (error != cudaSuccess) return fail_with(error);
  *graph = reinterpret_cast<cudaGraph_t>(new GraphRef(std::move(made)));
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                                     std::size_t* count) {
  VGPU_ENTER();
  const Stream& asked = runtime.streams().use(stream);
  const Graph* const captured = runtime.graphs().of(asked);
  *status = captured == nullptr                ? cudaStreamCaptureStatusNone
            : runtime.graphs().is_valid(asked) ? cudaStreamCaptureStatusActive
                                               : cudaStreamCaptureStatusInvalidated;
  if (captured != nullptr && id != nullptr) *id = static_cast<unsigned long long>(captured->id);
  if (graph != nullptr) *graph = nullptr;  // it cannot be changed during the capture
  if (nodes != nullptr) *nodes = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  VGPU_ENTER();
  std::size_t found = 0;
  const std::size_t most = nodes == nullptr ? 0 : *count;
  for (const GraphNode& node : graph_of(graph)->nodes) {
    if (node.is != GraphNode::Is::kWork) continue;
    if (found < most) {
      nodes[found] = reinterpret_cast<cudaGraphNode_t>(const_cast<GraphNode*>(&node));
    }
    ++found;
  }
  for (std::size_t i = found; i < most; ++i) nodes[i] = nullptr;
  *count = nodes == nullptr ? found : std::min(found, most);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  VGPU_ENTER();
  return instantiate(runtime, exec, graph);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long) {
  VGPU_ENTER();
  return instantiate(runtime, exec, graph);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  VGPU_ENTER();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  VGPU_ENTER();
  Stream& on = runtime.streams().use(stream);
  if (runtime.graphs().of(on) != nullptr) {
    runtime.graphs().spoil(on);
    return fail_with(cudaErrorStreamCaptureUnsupported);  // child graphs are not modelled
  }
  Replay(runtime, exec_of(exec), on).run(on);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  VGPU_ENTER();
  delete &graph_of(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  VGPU_ENTER();
  const std::unique_ptr<GraphExec> exec(&exec_of(handle));
  for (Stream* other : exec->others) {
    runtime.schedule().finish(*other);
    runtime.streams().destroy(*other);
  }
  runtime.freed().release();
  return cudaSuccess;
}

}  // extern "C"

}  // namespace ferry::vgpu
