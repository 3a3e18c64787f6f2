// Finds copies that should not have been made: of a global (parameters and buffers stay), or of
// bytes of which the host holds a copy already.
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

  // Returns an empty text where there is nothing to complain of.
  const std::string& complaint() const { return complaint_; }

 private:
  struct Copy {
    Range from;
    Range to;
  };
  void forget(const Range& range);

  std::vector<bool> may_move_;  // of the globals, in the order in which they are allocated
  std::size_t globals_seen_ = 0;
  std::vector<Range> globals_;
  std::vector<Copy> copies_;
  std::string complaint_;
};

}  // namespace ferry::verify
