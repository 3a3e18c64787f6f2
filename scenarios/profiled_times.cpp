#include "scenarios/profiled_times.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>

#include "formats/layout.h"

namespace ferry {
namespace {

bool agree(const std::optional<Layout>& layout, const ProfiledInput& input) {
  if (!layout) return true;
  return layout->shape == input.shape && input.dtype.value_or(layout->dtype) == layout->dtype;
}

// On some cards PyTorch prefers cuDNN's attention, but a program has flash attention. Both have the
// same first tensors: queries, keys and values; in backward the gradient, these three, the output
// and its logsumexp. The random seeds after them differ.
constexpr std::string_view kCudnn = "aten._scaled_dot_product_cudnn_attention";
constexpr std::string_view kFlash = "aten._scaled_dot_product_flash_attention";
constexpr std::string_view kBackward = "_backward";

std::string filed_as(std::string_view name) {
  if (!name.starts_with(kCudnn)) return std::string(name);
  return std::string(kFlash).append(name.substr(kCudnn.size()));
}

// Drops the inputs of attention that differ between cuDNN and flash: the first ones identify a
// call.
template <class Inputs>
void keep_telling(std::string_view filed, Inputs& inputs) {
  if (!filed.starts_with(kFlash)) return;
  const std::size_t telling = filed.ends_with(kBackward) ? 6 : 3;
  if (inputs.size() > telling) inputs.resize(telling);
}

bool agree(const OpSignature& op, const std::vector<ProfiledInput>& inputs) {
  return std::equal(op.in.begin(), op.in.end(), inputs.begin(), inputs.end(),
                    [](const auto& layout, const auto& input) { return agree(layout, input); });
}

// Drops tensors without dimensions: a number that is passed as a tensor is such a tensor in a
// profile, but no tensor in a program.
std::vector<ProfiledInput> without_numbers(std::vector<ProfiledInput> inputs) {
  std::erase_if(inputs, [](const ProfiledInput& input) { return input.shape.empty(); });
  return inputs;
}

// Returns the size of a call's tensors; empty if a dtype is not known.
std::optional<std::int64_t> bytes_of(const OpSignature& op,
                                     const std::vector<ProfiledInput>& inputs) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::optional<DType> dtype = inputs[i].dtype;
    if (!dtype && op.in[i]) dtype = op.in[i]->dtype;
    if (!dtype) return std::nullopt;
    bytes += numel(inputs[i].shape) * itemsize(*dtype);
  }
  return bytes;
}

}  // namespace

void ProfiledTimes::add(const std::vector<ProfiledCall>& calls) {
  for (const ProfiledCall& call : calls) {
    const std::string name = filed_as(call.name);
    std::vector<ProfiledInput> inputs = call.inputs;
    keep_telling(name, inputs);
    calls_[name][inputs].push_back(call.kernels_ns);
    const std::vector<ProfiledInput> tensors = without_numbers(inputs);
    if (tensors != inputs) calls_[name][tensors].push_back(call.kernels_ns);
  }
}

std::optional<std::int64_t> ProfiledTimes::find(OpSignature op) const {
  keep_telling(op.name, op.in);
  const auto named = calls_.find(op.name);
  if (named == calls_.end()) return std::nullopt;
  std::vector<const Calls::value_type*> found;
  for (const auto& call : named->second) {
    if (agree(op, call.first)) found.push_back(&call);
  }
  if (found.size() > 1) {
    std::erase_if(found,
                  [&](const auto* call) { return bytes_of(op, call->first) != op.read_bytes; });
  }
  if (found.size() != 1) return std::nullopt;
  std::vector<std::int64_t> ns = found.front()->second;
  std::sort(ns.begin(), ns.end());
  return ns[ns.size() / 2];
}

}  // namespace ferry
