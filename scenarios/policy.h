// The policies of `ferry plan`: what each is called, and whether it needs a program with segments.
// How each one runs the step is in plan/policies.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

enum class Policy : std::uint8_t {
  kKeep,
  kOffloadAll,
  kOffload,
  kPrefetch,
  kCheckpoint,
  kCheckpointNth,
  kCheckpointOffload,
  kCheckpointOffloadAll,
  kSelective,
  kKnapsack,
  kBudget,
  kMixed,
  kBest,
};

// Whose algorithm the policies offload-all and checkpoint-offload-all re-enact (sim/field/stash.h).
enum class OffloadAll : std::uint8_t { kTrl, kTrlUntold, kTrlStaleKeys, kRecordStream };
inline constexpr std::array<std::string_view, 4> kOffloadAllNames = {
    "trl", "trl-untold", "trl-stale-keys", "record-stream"};

// Where nobody asks for a policy by name.
enum class Asked : std::uint8_t {
  kFirst,   // it is in the table all the same
  kInAll,   // it is in that of `all`
  kByName,  // it is not: it re-enacts what another system recomputes or moves
};

struct PolicyEntry {
  Policy policy;
  std::string_view name;
  Asked asked = Asked::kInAll;
  bool for_segments = false;
  bool other_scheduler = false;  // in the core's place: no plan is written of it
};

// In the order of the enum, and of the table that is printed: the searches come last.
inline constexpr std::array kPolicies = {
    PolicyEntry{Policy::kKeep, "keep", Asked::kFirst},
    PolicyEntry{Policy::kOffloadAll, "offload-all", Asked::kFirst, /*for_segments=*/false,
                /*other_scheduler=*/true},
    PolicyEntry{Policy::kOffload, "offload", Asked::kFirst},
    PolicyEntry{Policy::kPrefetch, "prefetch"},
    PolicyEntry{Policy::kCheckpoint, "checkpoint", Asked::kFirst, /*for_segments=*/true},
    PolicyEntry{Policy::kCheckpointNth, "checkpoint-nth", Asked::kInAll, /*for_segments=*/true},
    PolicyEntry{Policy::kCheckpointOffload, "checkpoint-offload", Asked::kInAll,
                /*for_segments=*/true},
    PolicyEntry{Policy::kCheckpointOffloadAll, "checkpoint-offload-all", Asked::kByName,
                /*for_segments=*/true, /*other_scheduler=*/true},
    PolicyEntry{Policy::kSelective, "selective", Asked::kByName, /*for_segments=*/true},
    PolicyEntry{Policy::kKnapsack, "knapsack", Asked::kByName},
    PolicyEntry{Policy::kBudget, "budget"},
    PolicyEntry{Policy::kMixed, "mixed", Asked::kInAll, /*for_segments=*/true},
    PolicyEntry{Policy::kBest, "best", Asked::kFirst},
};
// In the place of names: all but those that re-enact other systems'.
inline constexpr std::string_view kAllPolicies = "all";
static_assert([] {
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    if (kPolicies[i].policy != static_cast<Policy>(i)) return false;
  }
  return kPolicies.back().policy == Policy::kBest;
}());

constexpr const PolicyEntry& entry(Policy policy) {
  return kPolicies[static_cast<std::size_t>(policy)];
}
constexpr std::string_view name(Policy policy) { return entry(policy).name; }
constexpr bool is_for_segments(Policy policy) { return entry(policy).for_segments; }

constexpr std::optional<Policy> find_policy(std::string_view name) {
  const auto found = std::find_if(kPolicies.begin(), kPolicies.end(),
                                  [name](const PolicyEntry& each) { return each.name == name; });
  return found == kPolicies.end() ? std::nullopt : std::optional(found->policy);
}

inline std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyEntry& each : kPolicies) names.emplace_back(each.name);
  return names;
}

// "keep, offload-all, … or mixed".
inline std::string list_of_policies() {
  std::string text;
  for (const PolicyEntry& each : kPolicies) {
    if (!text.empty()) text += &each == &kPolicies.back() ? " or " : ", ";
    text += each.name;
  }
  return text;
}

}  // namespace ferry
