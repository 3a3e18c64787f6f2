// Programs of nodes in a row that each save one tensor, for what a scheduler of them holds.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "formats/builder.h"

namespace ferry::test {

// A step whose nodes each save one tensor and read it again.
class SavingSteps {
 public:
  static constexpr std::int64_t kElements = 40'000;
  static constexpr std::int64_t kBytes = 2 * kElements;  // of an activation

  SavingSteps()
      : type_(b_.type({kElements})),
        half_(b_.layout({DType::kBF16, {kElements / 2}, {1}, 64})),
        gaps_(b_.layout({DType::kBF16, {kElements / 2}, {2}, 0})) {
    weight_ = b_.global(GlobalKind::kParameter, type_);
    forward_ = b_.code(CodeKind::kSegment, "forward");
    x_ = weight_;
  }

  // The next activation, made by a kernel of that name.
  Slot make(const char* name) { return b_.op(forward_, name, {weight_}, type_); }
  Slot view(Slot of) { return b_.view(forward_, of, half_); }
  // Every second element of it.
  Slot view_with_gaps(Slot of) { return b_.view(forward_, of, gaps_); }
  void free(std::vector<Slot> slots) { b_.add(forward_, Free{std::move(slots)}); }
  // A node that saves it, and whose backward reads it in a kernel of that name.
  void save(Slot saved, const char* reads) {
    const CodeId body = b_.code(CodeKind::kBody, reads);
    const Slot gradient = b_.argument(body);
    const Slot unpacked = b_.saved(body);
    b_.result(body, b_.op(body, reads, {gradient, unpacked}, type_));
    const Slot y = b_.op(forward_, "y", {x_}, type_);
    b_.add(forward_, MakeNode{reads, b_.node_id(), {x_}, {y}, {saved}, body});
    x_ = y;
  }
  Program run(bool backward) {
    b_.result(forward_, x_);
    const Slot result = b_.slot(0);
    b_.add(0, Call{forward_, {}, {result}});
    if (backward) b_.add(0, Backward{{result}, {}, {}, false, false});
    return b_.program;
  }

 private:
  Builder b_;
  TypeId type_, half_, gaps_;
  Slot weight_ = 0;
  CodeId forward_ = 0;
  Slot x_ = 0;
};

}  // namespace ferry::test
