#include "verify/oracles/places.h"

namespace ferry::verify {

void Places::operator()(const StreamOp& op) {
  if (op.kind == StreamOpKind::kAlloc && op.stream != sim::kNoStream) {  // not host memory
    blocks_[op.range.address] = {op.range.end(), machine_.device_of(op.stream)};
    of_.erase(op.range.address);
  }
  if (op.step == Step::kReceived) recorded_[op.event] = arrived_[op.stream];
  if (op.step == Step::kTakeReceived && recorded_[op.event]) {
    waited_.emplace(op.stream, *recorded_[op.event]);
  }
  if (op.kind == StreamOpKind::kCopy) arrived_[op.stream] = trace(op);
  if (op.kind != StreamOpKind::kKernel) return;
  for (const Range& range : op.reads) judge(op, range);
  for (const Range& range : op.writes) judge(op, range);
  if (const auto microbatch = trace(op)) take_part(op, *microbatch);
}

void Places::judge(const StreamOp& op, const Range& range) {
  const auto after = blocks_.upper_bound(range.address);
  if (after == blocks_.begin()) return;
  const Block& block = std::prev(after)->second;
  const std::uint32_t here = machine_.device_of(op.stream);
  if (range.address >= block.end || block.device == here) return;
  misplaced_ = "`" + std::string(op.name) + "` runs on device " + std::to_string(here) +
               " with memory of device " + std::to_string(block.device);
}

// What is computed from a micro-batch's tensors belongs to it. Weights belong to no micro-batch.
std::optional<std::size_t> Places::trace(const StreamOp& op) {
  for (const Range& range : op.reads) {
    const auto found = of_.find(range.address);
    if (found == of_.end()) continue;
    const std::size_t microbatch = found->second;
    for (const Range& made : op.writes) of_[made.address] = microbatch;
    return microbatch;
  }
  return std::nullopt;
}

void Places::take_part(const StreamOp& op, std::size_t microbatch) {
  orders_[std::string(op.name)].push_back(microbatch);
  const bool waited = waited_.erase({op.stream, microbatch}) > 0;
  if (op.name.starts_with("grad")) {
    const std::string layer = "layer" + std::string(op.name.substr(4, op.name.find('.') - 4));
    ahead_.try_emplace(layer, forward_[layer].size());
    ran_.erase({layer, microbatch});
    return;
  }
  if (!op.name.starts_with("layer")) return;  // for example, a sum of gradients
  forward_[std::string(op.name)].insert(microbatch);
  if (!ran_.emplace(op.name, microbatch).second && waited) {
    late_ = "`" + std::string(op.name) + "` of micro-batch " + std::to_string(microbatch) +
            " is recomputed after its stream waited for gradients";
  }
}

std::optional<std::size_t> Places::ahead(std::size_t layer) const {
  const auto found = ahead_.find("layer" + std::to_string(layer));
  return found == ahead_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::size_t> Places::order(std::string_view kernel) const {
  const auto found = orders_.find(kernel);
  return found == orders_.end() ? std::vector<std::size_t>() : found->second;
}

}  // namespace ferry::verify
