// Finds memory that a backward leaves behind: what an op that ran again made goes at the latest
// with the outermost graph task in which it ran, for nobody may need it any more. (Of a step with
// one derivative. Where there are more, the graph of the next one may.)
//
// It knows the ops that may run again from the program, and which of them do from the engine: they
// are kernels of forward within a graph task.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "formats/program.h"
#include "sim/gpu/machine.h"
#include "sim/program/graph_engine.h"

namespace ferry::verify {

// Watches one run, from its first operation on.
class Lives final : public StreamOpConsumer, public sim::TaskWatch {
 public:
  explicit Lives(const Program& program);
  void operator()(const StreamOp& op) override;
  void task_began() override { ++depth_; }
  void task_ended() noexcept override;

  // Empty where there is nothing to complain of.
  const std::string& complaint() const { return complaint_; }

 private:
  std::set<std::string, std::less<>> ops_;      // of forward
  std::map<std::uint64_t, std::string> alive_;  // by address: who wrote it again; "": nobody
  int depth_ = 0;
  std::string complaint_;
};

}  // namespace ferry::verify
