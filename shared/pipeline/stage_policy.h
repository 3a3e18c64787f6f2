// The policies for a pipeline stage: how it treats tensors of a micro-batch until its backward.
// PipeOptions::stage_policies and the plans of `ferry plan --stages` give one to each stage.
//
//   keep                 keeps all saved tensors
//   offload              moves its saved tensors to the host
//   checkpoint           keeps its inputs only, and recomputes
//   checkpoint+offload   moves its inputs to the host, and recomputes
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry {

enum class StagePolicy : std::uint8_t { kKeep, kOffload, kCheckpoint, kCheckpointOffload };
inline constexpr std::string_view kStagePolicyNames[] = {"keep", "offload", "checkpoint",
                                                         "checkpoint+offload"};
constexpr std::string_view name(StagePolicy policy) {
  return kStagePolicyNames[static_cast<std::size_t>(policy)];
}

constexpr bool runs_again(StagePolicy policy) {
  return policy == StagePolicy::kCheckpoint || policy == StagePolicy::kCheckpointOffload;
}
constexpr bool offloads(StagePolicy policy) {
  return policy == StagePolicy::kOffload || policy == StagePolicy::kCheckpointOffload;
}

}  // namespace ferry
