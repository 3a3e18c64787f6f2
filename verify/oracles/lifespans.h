// Finds recomputed tensors that live longer than they are needed. A tensor that a recompute or a
// replay made may live, node by node, until its original is freed in the run that keeps everything.
// There, it is freed after the last node that saved it has run.
//
// Tensors are identified by the tags of the forward's kernels. So each kernel may run only once in
// forward, and both runs must have the same nodes in the same order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/gpu/machine.h"
#include "sim/program/graph_engine.h"

namespace ferry::verify {

// Watches one run, from its first operation on.
class Lifespans final : public StreamOpConsumer, public sim::TaskWatch {
 public:
  // `kept` watched the run that recomputes and offloads nothing (keep_run.h), which is over. Null:
  // this object watches that run.
  explicit Lifespans(const Lifespans* kept = nullptr) : kept_(kept) {}
  void operator()(const StreamOp& op) override;
  void task_began() override { ++depth_; }
  void task_ended() noexcept override;
  void node_begins() override { next(); }

  // Empty if there is no complaint.
  const std::string& complaint() const { return complaint_; }

 private:
  using Node = std::int64_t;  // number of nodes that have begun and tasks that have ended
  struct Block {
    std::vector<std::uint64_t> tags;  // of the kernels that wrote the block
    bool again = false;               // allocated within a graph task
  };

  void next();
  void compare();
  void write(const StreamOp& op, const Range& range);

  const Lifespans* kept_;
  std::map<std::uint64_t, Block> alive_;                // by address
  std::map<std::uint64_t, std::string> forward_names_;  // by tag
  std::map<std::uint64_t, Node> gone_;                  // by tag: when its last block was freed
  Node nodes_ = 0;
  int depth_ = 0;
  std::string complaint_;
};

}  // namespace ferry::verify
