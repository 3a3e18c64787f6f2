// Finds copies to the host that must not be made: copies of parameters and buffers, and copies of
// bytes that the host already has.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "formats/program.h"
#include "sim/gpu/machine.h"

namespace ferry::verify {

// Watches one run of the program, from its first operation on.
class MoveWatch final : public StreamOpConsumer {
 public:
  explicit MoveWatch(const Program& program);
  void operator()(const StreamOp& op) override;

  // Empty if there is no complaint.
  const std::string& complaint() const { return complaint_; }

 private:
  struct Copy {
    Range from;
    Range to;
  };
  void forget(const Range& range);

  std::vector<bool> may_move_;  // for each global, in order of allocation
  std::size_t globals_seen_ = 0;
  std::vector<Range> globals_;
  std::vector<Copy> copies_;
  std::string complaint_;
};

}  // namespace ferry::verify
