// The nodes that a pipeline asks autograd for: none in vain, and those of its picture.
//
// A node is known by its shape: how many tensors, and phonies, go in and come out. A fork, say,
// takes a tensor and gives a tensor and a phony. It runs on the stream on which it was made, and
// that decides what waits for what in backward; so the stream belongs to the picture.
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
  bool computes = false;  // on the stream that computes; else on one of arrival
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

  // Those that were made.
  const AskedNodeCounts& counts() const { return counts_; }
  // How many were asked for where no gradient can come by: without grad mode, or no input requires
  // grad.
  std::int64_t in_vain() const { return in_vain_; }

 private:
  sim::Machine& machine_;
  AskedNodeCounts counts_;
  std::int64_t in_vain_ = 0;
};

// What differs from the picture, in words; empty: nothing does.
std::string difference(const AskedNodeCounts& made, const AskedNodeCounts& expected);

}  // namespace ferry::verify
