// Is told of the nodes that the core asks for, of pipelines and reentrant checkpoints, beside those
// of the program's own ops.
#pragma once

#include <span>

#include "sim/program/graph.h"

namespace ferry::sim {

class NodeWatch {
 public:
  virtual ~NodeWatch() = default;
  // The outputs have no graph yet. Not `needed`: without grad mode, or where no input requires
  // grad, there is no node.
  virtual void asked(std::span<const Value> inputs, std::span<const Value> outputs,
                     bool needed) = 0;
};

}  // namespace ferry::sim
