// Where a pipeline's kernels run, and in what order: each on the device whose memory it reads and
// writes; so many forwards before the first backward as the schedule says; in backward the last
// micro-batch first; and what runs again before the stream waits for the gradients that it runs
// again for.
//
// A simulated kernel computes the same from memory of another device, which CUDA would refuse or
// fetch over the link; and gradients are sums, whatever comes first. So values show none of it.
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

// Watches one run, from its first operation on. Kernels have names: "layer3" in forward, "grad3.0"
// in backward.
class Places final : public StreamOpConsumer {
 public:
  // The machine must outlive it.
  explicit Places(const sim::Machine& machine) : machine_(machine) {}
  void operator()(const StreamOp& op) override;

  // What runs from now on runs for the first time.
  void step_begins() { ran_.clear(); }
  // What a stream has waited for so far was another backward's.
  void backward_begins() { waited_.clear(); }
  // What is made of that memory belongs to the micro-batch.
  void input(const Range& range, std::size_t microbatch) { of_[range.address] = microbatch; }

  // Whose tensor begins there; none: nobody's.
  std::optional<std::size_t> microbatch_of(const Range& range) const {
    const auto found = of_.find(range.address);
    return found == of_.end() ? std::nullopt : std::optional(found->second);
  }
  // The micro-batches that a kernel worked on, one after the other.
  std::vector<std::size_t> order(std::string_view kernel) const;
  // How many micro-batches a layer had gone forward with when it first went backward; none: it did
  // not.
  std::optional<std::size_t> ahead(std::size_t layer) const;
  // What ran on another device than its memory's; empty: nothing did.
  const std::string& misplaced() const { return misplaced_; }
  // What ran again only after its stream had waited for a gradient; empty: nothing did.
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
  std::map<std::uint64_t, Block> blocks_;              // of devices' memory, by address
  std::unordered_map<std::uint64_t, std::size_t> of_;  // by address: whose tensor begins there
  std::map<std::string, std::vector<std::size_t>, std::less<>> orders_;
  std::map<std::string, std::set<std::size_t>, std::less<>> forward_;  // micro-batches, by layer
  std::map<std::string, std::size_t, std::less<>> ahead_;
  std::set<std::pair<std::string, std::size_t>> ran_;       // forward kernels, since their backward
  std::map<StreamId, std::optional<std::size_t>> arrived_;  // what the latest copy had
  std::map<EventId, std::optional<std::size_t>> recorded_;  // likewise
  std::set<std::pair<StreamId, std::size_t>> waited_;       // since a kernel worked on it
  std::string misplaced_, late_;
};

}  // namespace ferry::verify
