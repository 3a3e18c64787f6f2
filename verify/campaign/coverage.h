// Coverage of a campaign: which features its programs had, which steps the core took, and how often
// each choice was requested. `ferry verify` prints it, so that a user sees what was tried. All
// members are sums, so they do not depend on the order of programs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "shared/seam/step.h"
#include "sim/choices/choices.h"
#include "sim/gpu/machine.h"
#include "verify/campaign/drawn_run.h"

namespace ferry::verify {

struct Coverage {
  std::int64_t programs = 0;
  std::int64_t runs = 0;        // more than `programs` if all ways or orders are tried
  std::int64_t classes = 0;     // classes of equivalent orders that ran
  std::int64_t cut_off = 0;     // programs for which some ways or orders did not run
  std::int64_t operations = 0;  // stream operations, including waits and records
  std::int64_t device_operations = 0;
  std::int64_t chosen = 0;                   // programs with random answers to their choices
  std::int64_t schedules = 0;                // random orders of the device that were tried
  std::int64_t failures = 0;                 // programs in which a call or an allocation failed
  std::array<std::int64_t, kSteps> steps{};  // operations by step of the core
  std::array<std::uint64_t, choices::kChoicePoints> asked{};
  std::map<std::string, std::int64_t> features;  // number of programs that have each feature

  void add(const DrawnRun& drawn);
  Coverage& operator+=(const Coverage& other);
};

// Adds each operation of a run to `coverage`, and passes it on to `next`.
class OperationCount final : public StreamOpConsumer {
 public:
  explicit OperationCount(Coverage& coverage, StreamOpConsumer* next = nullptr)
      : coverage_(coverage), next_(next) {}
  void operator()(const StreamOp& op) override;

 private:
  Coverage& coverage_;
  StreamOpConsumer* next_;  // not owned; may be null
};

// Returns true for operations that a device executes (kernels, copies, fills, host functions), and
// false for waits, records and the like.
constexpr bool is_device_operation(StreamOpKind kind) {
  return kind == StreamOpKind::kKernel || kind == StreamOpKind::kCopy ||
         kind == StreamOpKind::kMemset || kind == StreamOpKind::kHostFunc;
}

}  // namespace ferry::verify
