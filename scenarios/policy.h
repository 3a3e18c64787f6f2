// The policies of `ferry plan`: their names, and which need a program with segments.
// plan/policies.h says how each policy runs the step.
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
  kOffloadSome,
  kMixed,
  kBest,
};

// The algorithm that the policies offload-all and checkpoint-offload-all simulate
// (sim/field/stash.h).
enum class OffloadAll : std::uint8_t { kTrl, kTrlUntold, kTrlStaleKeys, kRecordStream };
inline constexpr std::array<std::string_view, 4> kOffloadAllNames = {
    "trl", "trl-untold", "trl-stale-keys", "record-stream"};

// When a policy is in the table of `ferry plan`.
enum class Asked : std::uint8_t {
  kFirst,   // by default, and with `all`
  kInAll,   // with `all`
  kByName,  // only if it is named: it simulates what another system recomputes or moves
};

struct PolicyEntry {
  Policy policy;
  std::string_view name;
  Asked asked = Asked::kInAll;
  bool for_segments = false;
  bool other_scheduler = false;  // replaces the core, so it has no plan to write
};

// In the order of the enum and of the printed table. The searches come last.
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
    PolicyEntry{Policy::kOffloadSome, "offload-some"},
    PolicyEntry{Policy::kMixed, "mixed", Asked::kInAll, /*for_segments=*/true},
    PolicyEntry{Policy::kBest, "best", Asked::kFirst},
};
// Typed instead of names: all policies except those that simulate other systems.
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

// Also knows "budget", the name of offload-some in scenarios and sweeps of earlier versions.
constexpr std::optional<Policy> find_policy(std::string_view name) {
  if (name == "budget") return Policy::kOffloadSome;
  const auto found = std::find_if(kPolicies.begin(), kPolicies.end(),
                                  [name](const PolicyEntry& each) { return each.name == name; });
  return found == kPolicies.end() ? std::nullopt : std::optional(found->policy);
}

inline std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyEntry& each : kPolicies) names.emplace_back(each.name);
  return names;
}

// Returns "keep, offload-all, … or best".
inline std::string list_of_policies() {
  std::string text;
  for (const PolicyEntry& each : kPolicies) {
    if (!text.empty()) text += &each == &kPolicies.back() ? " or " : ", ";
    text += each.name;
  }
  return text;
}

}  // namespace ferry
