// Counts the nodes that a pipeline adds to autograd's graph. try_pipeline.cpp checks that they are
// the expected ones (pipeline_picture.h), and that none is unused.
//
// A node is identified by its shape: how many tensors and phonies go in and come out. For example,
// a fork takes a tensor and returns a tensor and a phony. A node's backward runs on the stream on
// which the node was made, and this decides which work waits for which. So the stream is compared,
// too.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "sim/gpu/machine.h"
#include "sim/program/node_watch.h"

namespace ferry::verify {

struct AskedNode {
  std::uint32_t device = 0;
  bool computes = false;  // on the compute stream; otherwise on a stream of arrival
  std::size_t tensors_in = 0, phonies_in = 0;
  std::size_t tensors_out = 0, phonies_out = 0;
  auto operator<=>(const AskedNode&) const = default;
};
using AskedNodeCounts = std::map<AskedNode, std::int64_t>;

class AskedNodes final : public sim::NodeWatch {
 public:
  // The machine must outlive it.
  explicit AskedNodes(sim::Machine& machine) : machine_(machine) {}
  void asked(std::span<const sim::Value> inputs, std::span<const sim::Value> outputs,
             bool needed) override;

  // The nodes that were made.
  const AskedNodeCounts& counts() const { return counts_; }
  // How many nodes were requested that no gradient can reach, because grad mode was off or no input
  // requires a gradient.
  std::int64_t in_vain() const { return in_vain_; }

 private:
  sim::Machine& machine_;
  AskedNodeCounts counts_;
  std::int64_t in_vain_ = 0;
};

// Describes the first difference; empty if there is none.
std::string difference(const AskedNodeCounts& made, const AskedNodeCounts& expected);

}  // namespace ferry::verify
