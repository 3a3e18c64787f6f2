// The names of the keys, and the reader of those of CUDA graphs (formats/STREAM_LOG.md).
#include "formats/stream_log.h"

namespace ferry {

// In the order of StreamLogReader::Key.
static constexpr std::string_view kKeyNames[] = {
    "op",     "stream",  "event", "id",       "kind",       "device", "reads",
    "writes", "src",     "dst",   "src_kind", "dst_kind",   "api",    "blocked",
    "result", "address", "bytes", "pool",     "buffer",     "token",  "thread",
    "name",   "where",   "ferry", "graph",    "graph_pool", "node",   "captured",
};

std::string_view StreamLogReader::key_name(Key key) {
  return kKeyNames[static_cast<std::size_t>(key)];
}

void StreamLogReader::graph(StreamOp& op) {
  const bool is_alloc = op.kind == StreamOpKind::kAlloc;
  const bool is_node = op.kind == StreamOpKind::kKernel || op.kind == StreamOpKind::kCopy ||
                       op.kind == StreamOpKind::kMemset || op.kind == StreamOpKind::kHostFunc;
  if (!is_alloc && !is_node) return;
  op.captured = is_node && flag(Key::kCaptured);
  const bool in_pool = is_alloc && (find(Key::kGraphPool) || find(Key::kGraph));
  if (in_pool) op.graph_pool = id(Key::kGraphPool, graph_pools_) + 1;
  if (!op.captured && !find(Key::kGraph)) return;
  op.graph = GraphId{id(Key::kGraph, graphs_) + 1};
  if (is_node) op.node = static_cast<std::uint32_t>(number(Key::kNode, 0xffff'ffff));
}

}  // namespace ferry
