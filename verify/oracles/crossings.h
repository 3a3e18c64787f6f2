// Counts what a pipeline's transfers (shared/transfer/transfer.h) do on the devices. Each transfer
// makes the stream of arrival wait for the sent tensors, copies them, and makes the compute stream
// wait for the copies. Stages on the same device need no transfer. try_pipeline.cpp compares the
// counts with the predicted ones (pipeline_picture.h), so that no transfer is missing or needless.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/gpu/machine.h"

namespace ferry::verify {

// Counts, for each device, how often each step was taken on one of its streams.
class CrossingCounts {
 public:
  explicit CrossingCounts(std::size_t devices) : of_(devices) {}
  void add(std::uint32_t device, Step step, std::int64_t times) {
    of_[device][static_cast<std::size_t>(step) - kFirst] += times;
  }
  // Adds `times` transfers with `tensors` tensors in all.
  void move(std::uint32_t from, std::uint32_t to, std::int64_t times, std::int64_t tensors);
  // The two halves of a transfer: the arrival, and the wait for it.
  void arrive(std::uint32_t from, std::uint32_t to, std::int64_t times, std::int64_t tensors);
  void take(std::uint32_t from, std::uint32_t to, std::int64_t times, std::int64_t tensors);

  // Describes the first difference; empty if there is none.
  std::string difference(const CrossingCounts& expected) const;

  static constexpr std::size_t kFirst = static_cast<std::size_t>(Step::kSent);

 private:
  std::vector<std::array<std::int64_t, kSteps - kFirst>> of_;
};

// Watches one run, from its first operation on.
class Crossings final : public StreamOpConsumer {
 public:
  // The machine must outlive it.
  Crossings(const sim::Machine& machine, std::size_t devices)
      : machine_(machine), counts_(devices) {}
  void operator()(const StreamOp& op) override {
    if (op.step < Step::kSent || op.kind == StreamOpKind::kAlloc) return;
    counts_.add(machine_.device_of(op.stream), op.step, 1);
  }
  const CrossingCounts& counts() const { return counts_; }

 private:
  const sim::Machine& machine_;
  CrossingCounts counts_;
};

}  // namespace ferry::verify
