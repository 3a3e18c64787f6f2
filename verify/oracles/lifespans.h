// Finds what a run that computes again leaves alive for longer than it is needed: a tensor that a
// recompute or a replay made may live until its original goes in a run that keeps everything, node
// by node. There it goes as soon as the last node that saved it has run.
//
// Values are known by the tags of the forward's kernels. So each may run once in forward, and both
// runs must have the same nodes in the same order.
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
  // `kept`: of the run that keeps everything, which is over; null: this is that run.
  explicit Lifespans(const Lifespans* kept = nullptr) : kept_(kept) {}
  void operator()(const StreamOp& op) override;
  void task_began() override { ++depth_; }
  void task_ended() noexcept override;
  void node_begins() override { next(); }

  // Empty where there is nothing to complain of.
  const std::string& complaint() const { return complaint_; }

 private:
  using Node = std::int64_t;  // how many have begun, and tasks have ended
  struct Block {
    std::vector<std::uint64_t> tags;  // of the kernels that wrote it
    bool again = false;               // within a graph task
  };

  void next();
  void compare();
  void write(const StreamOp& op, const Range& range);

  const Lifespans* kept_;
  std::map<std::uint64_t, Block> alive_;                // by address
  std::map<std::uint64_t, std::string> forward_names_;  // by tag
  std::map<std::uint64_t, Node> gone_;                  // by tag: when the last block of it went
  Node nodes_ = 0;
  int depth_ = 0;
  std::string complaint_;
};

}  // namespace ferry::verify
