// Records where and in what order a pipeline's kernels run. try_pipeline.cpp judges it:
//
// * Each kernel runs on the device whose memory it reads and writes.
// * If a schedule runs backward, as many forwards run before the first backward as it says.
// * If the caller starts backward, it takes the last micro-batch first.
// * If the caller starts backward and no layer pops a skip tensor, a recompute starts before its
//   stream waits for the gradients that it is needed for.
//
// Values do not show such faults. A simulated kernel computes the same with memory of another
// device, which CUDA would reject or access over the link, and a sum of gradients has one value in
// any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/stream_op.h"
#include "sim/gpu/machine.h"

namespace ferry::verify {

// Watches one run, from its first operation on. It knows kernels by name: "layer3" in forward,
// "grad3.0" in backward.
class Places final : public StreamOpConsumer {
 public:
  // The machine must outlive it.
  explicit Places(const sim::Machine& machine) : machine_(machine) {}
  void operator()(const StreamOp& op) override;

  // From now on, each forward kernel counts as running for the first time.
  void step_begins() { ran_.clear(); }
  // Forgets what streams have waited for: that belongs to an earlier backward.
  void backward_begins() { waited_.clear(); }
  // Says that this memory has the micro-batch's input. What is computed from it belongs to the
  // micro-batch, too.
  void input(const Range& range, std::size_t microbatch) { of_[range.address] = microbatch; }

  // Returns the micro-batch whose tensor begins there, if any.
  std::optional<std::size_t> microbatch_of(const Range& range) const {
    const auto found = of_.find(range.address);
    return found == of_.end() ? std::nullopt : std::optional(found->second);
  }
  // Returns the micro-batches that a kernel worked on, in order.
  std::vector<std::size_t> order(std::string_view kernel) const;
  // Returns how many micro-batches had passed the layer's forward before its first backward. None
  // if it had no backward.
  std::optional<std::size_t> ahead(std::size_t layer) const;
  // Describes a kernel that ran on another device than its memory; empty if there is none.
  const std::string& misplaced() const { return misplaced_; }
  // Describes a recompute that ran after its stream had waited for gradients; empty if there is
  // none.
  const std::string& late() const { return late_; }

 private:
  struct Block {
    std::uint64_t end = 0;
    std::uint32_t device = 0;
  };

  void judge(const StreamOp& op, const Range& range);
  std::optional<std::size_t> trace(const StreamOp& op);
  void take_part(const StreamOp& op, std::size_t microbatch);

  const sim::Machine& machine_;
  std::map<std::uint64_t, Block> blocks_;              // device memory by address
  std::unordered_map<std::uint64_t, std::size_t> of_;  // micro-batch by address of the tensor
  std::map<std::string, std::vector<std::size_t>, std::less<>> orders_;
  std::map<std::string, std::set<std::size_t>, std::less<>> forward_;  // micro-batches, by layer
  std::map<std::string, std::size_t, std::less<>> ahead_;
  std::set<std::pair<std::string, std::size_t>> ran_;       // forward kernels since their backward
  std::map<StreamId, std::optional<std::size_t>> arrived_;  // the micro-batch of the latest copy
  std::map<EventId, std::optional<std::size_t>> recorded_;  // the same for events
  std::set<std::pair<StreamId, std::size_t>> waited_;       // since a kernel worked on it
  std::string misplaced_, late_;
};

}  // namespace ferry::verify
