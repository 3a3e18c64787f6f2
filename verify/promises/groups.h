// What a group of backwards calls at its end: each callback whose owner lives, once. Those of
// owners that died are forgotten some time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "shared/seam/checkpoint_context.h"
#include "sim/choices/draws.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

template <class Group = ExecGroup>
std::optional<Verdict> judge_groups(choices::Draws& draws) {
  constexpr std::size_t kOwners = 64;
  // A few live to the end; the others die before the next callback comes.
  std::vector<std::shared_ptr<std::size_t>> owners;  // by their numbers
  std::array<int, kOwners> calls{};
  const auto held = std::make_shared<int>();  // by each callback that is not forgotten
  long most = 0;
  {
    Group group;
    for (std::size_t i = 0; i < kOwners; ++i) {
      const auto owner = std::make_shared<std::size_t>(i);
      group.at_end(owner, [held, &count = calls[i]] { ++count; });
      if (draws.one_in(16)) owners.push_back(owner);
      most = std::max(most, held.use_count() - 1);
    }
  }
  const bool once = std::all_of(owners.begin(), owners.end(),
                                [&calls](const auto& owner) { return calls[*owner] == 1; });
  if (!once) return Verdict{Oracle::kLeak, "a group's end is not told to those that wait for it"};
  const auto bound = static_cast<long>(2 * owners.size() + 18);
  if (most <= bound && held.use_count() == 1) return std::nullopt;
  return Verdict{Oracle::kLeak, "a group keeps the callbacks of owners that are gone"};
}

}  // namespace ferry::verify
