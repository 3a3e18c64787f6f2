#include "vgpu/runtime/graphs.h"

#include <algorithm>
#include <utility>

namespace ferry::vgpu {

Graphs::Capture* Graphs::find(const Stream& stream) const {
  for (const auto& capture : captures_) {
    const std::vector<StreamId>& streams = capture->graph->streams;
    if (std::find(streams.begin(), streams.end(), stream.id) != streams.end()) return capture.get();
  }
  return nullptr;
}

Graphs::Capture* Graphs::find(const Event& event) const {
  for (const auto& capture : captures_) {
    if (event.graph != GraphId{} && capture->graph->id == event.graph) return capture.get();
  }
  return nullptr;
}

cudaError_t Graphs::begin(const Stream& origin) {
  if (find(origin) != nullptr) return cudaErrorIllegalState;
  auto capture = std::make_unique<Capture>();
  capture->graph = std::make_shared<Graph>();
  capture->graph->id = GraphId{next_id_++};
  capture->graph->device = origin.device;
  capture->graph->streams = {origin.id};
  captures_.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t Graphs::end(const Stream& origin, std::shared_ptr<const Graph>& graph) {
  Capture* const capture = find(origin);
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->graph->streams.front() != origin.id) {
    capture->valid = false;
    return cudaErrorStreamCaptureUnmatched;
  }
  const bool joined = is_joined(*capture);
  const bool valid = capture->valid;
  if (valid && joined) graph = capture->graph;
  std::erase_if(captures_, [&](const auto& each) { return each.get() == capture; });
  if (!valid) return cudaErrorStreamCaptureInvalidated;
  return joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

// All work of the other streams comes before the end of the first one.
bool Graphs::is_joined(const Capture& capture) {
  const StreamId origin = capture.graph->streams.front();
  const auto known = capture.reach.find(origin);
  return std::all_of(capture.counts.begin(), capture.counts.end(), [&](const auto& each) {
    const auto& [stream, count] = each;
    if (stream == origin) return true;
    if (known == capture.reach.end()) return false;
    const auto reached = known->second.find(stream);
    return reached != known->second.end() && reached->second == count;
  });
}

const Graph* Graphs::of(const Stream& stream) const {
  const Capture* const capture = find(stream);
  return capture == nullptr ? nullptr : capture->graph.get();
}

bool Graphs::is_valid(const Stream& stream) const { return find(stream)->valid; }

void Graphs::spoil(const Stream& stream) { find(stream)->valid = false; }

const StreamOp* Graphs::add(const Stream& stream, const StreamOp* op, Work work,
                            const char* place) {
  Capture& capture = *find(stream);
  Graph& graph = *capture.graph;
  GraphNode node;
  node.stream = stream.id;
  node.work = std::move(work);
  node.place = place;
  if (op != nullptr) {
    node.is_logged = true;
    node.op = *op;
    node.reads.assign(op->reads.begin(), op->reads.end());
    node.writes.assign(op->writes.begin(), op->writes.end());
    node.op.graph = graph.id;
    node.op.node = graph.logged++;
    node.op.captured = true;
    node.op.host_order = HostOrder::kNone;
  }
  graph.nodes.push_back(std::move(node));
  ++capture.counts[stream.id];
  GraphNode& added = graph.nodes.back();
  added.op.reads = added.reads;
  added.op.writes = added.writes;
  return added.is_logged ? &added.op : nullptr;
}

void Graphs::record(const Stream& stream, Event& event) {
  Capture& capture = *find(stream);
  event.graph = capture.graph->id;
  event.captured = capture.records.size();
  event.latest = nullptr;
  Reach reach = capture.reach[stream.id];
  reach[stream.id] = capture.counts[stream.id];
  capture.records.push_back(std::move(reach));
  GraphNode node;
  node.is = GraphNode::Is::kRecord;
  node.stream = stream.id;
  node.event = event.captured;
  capture.graph->nodes.push_back(std::move(node));
}

cudaError_t Graphs::wait(const Stream& stream, const Event& event) {
  Capture* const waiting = find(stream);
  Capture* const capture = find(event);
  if (capture == nullptr && !event.latest) return cudaSuccess;  // it was never recorded
  if (waiting != nullptr && waiting != capture) {  // no node can wait for what is in no graph
    waiting->valid = false;
    return capture == nullptr ? cudaErrorStreamCaptureIsolation : cudaErrorStreamCaptureMerge;
  }
  if (waiting == nullptr) capture->graph->streams.push_back(stream.id);
  for (const auto& [id, count] : capture->records[event.captured]) {
    std::size_t& reached = capture->reach[stream.id][id];
    reached = std::max(reached, count);
  }
  GraphNode node;
  node.is = GraphNode::Is::kWait;
  node.stream = stream.id;
  node.event = event.captured;
  capture->graph->nodes.push_back(std::move(node));
  return cudaSuccess;
}

}  // namespace ferry::vgpu
