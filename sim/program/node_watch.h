// Observes the nodes that the core requests for pipelines and reentrant checkpoints. These are
// additional to those of the program's own ops. ferry verify checks with it that they are the
// expected ones (verify/oracles/asked_nodes.h).
#pragma once

#include <span>

#include "sim/program/graph.h"

namespace ferry::sim {

class NodeWatch {
 public:
  virtual ~NodeWatch() = default;
  // The outputs have no graph yet. `needed` is false without grad mode, or if no input requires
  // grad; then there is no node.
  virtual void asked(std::span<const Value> inputs, std::span<const Value> outputs,
                     bool needed) = 0;
};

}  // namespace ferry::sim
