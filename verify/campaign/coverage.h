// Coverage: which features a campaign's programs had, which steps the core took, and which choices
// were asked for. All are sums, so the order in which programs ran does not show.
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
  std::int64_t runs = 0;        // of the programs: several where all ways, or orders, are tried
  std::int64_t classes = 0;     // of orders that were tried
  std::int64_t cut_off = 0;     // programs of which not all ways, or orders, were tried
  std::int64_t operations = 0;  // on streams, those that are waited for included
  std::int64_t device_operations = 0;
  std::int64_t chosen = 0;                   // programs whose choices were drawn
  std::int64_t schedules = 0;                // orders of the device that were drawn and run
  std::int64_t failures = 0;                 // programs in which a call or an allocation failed
  std::array<std::int64_t, kSteps> steps{};  // operations by step
  std::array<std::uint64_t, choices::kChoicePoints> asked{};
  std::map<std::string, std::int64_t> features;  // how many programs have it

  void add(const DrawnRun& drawn);
  Coverage& operator+=(const Coverage& other);
};

// Adds the operations of a run to the coverage while it goes on, and passes them on.
class OperationCount final : public StreamOpConsumer {
 public:
  explicit OperationCount(Coverage& coverage, StreamOpConsumer* next = nullptr)
      : coverage_(coverage), next_(next) {}
  void operator()(const StreamOp& op) override;

 private:
  Coverage& coverage_;
  StreamOpConsumer* next_;  // not owned; null: nobody
};

// Whether a device does it (kernels, copies, fills), and not only waits or is waited for.
constexpr bool is_device_operation(StreamOpKind kind) {
  return kind == StreamOpKind::kKernel || kind == StreamOpKind::kCopy ||
         kind == StreamOpKind::kMemset || kind == StreamOpKind::kHostFunc;
}

}  // namespace ferry::verify
