// What a stage of a pipeline keeps of a micro-batch until its backward.
//
//   keep                 everything
//   offload              what it saves moves to the host
//   checkpoint           its inputs, and it runs again
//   checkpoint+offload   the same, and its inputs move to the host until it runs again
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
