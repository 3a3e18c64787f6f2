// Finds memory that a backward leaves behind. The output of a recomputed op must be freed by the
// end of the outermost graph task in which it was recomputed, because nothing can need it later.
// This holds for steps with one derivative: the graph of a further derivative may need it.
//
// The ops that may be recomputed are known from the program. They are recomputed if they run as
// kernels of forward within a graph task.
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

  // Empty if there is no complaint.
  const std::string& complaint() const { return complaint_; }

 private:
  std::set<std::string, std::less<>> ops_;      // of forward
  std::map<std::uint64_t, std::string> alive_;  // by address: the op that wrote it again, or ""
  int depth_ = 0;
  std::string complaint_;
};

}  // namespace ferry::verify
