// Tools to rewrite the statements of a code: its slots, ranges of statements, and its frees. Code
// that outlines modules, cuts stages and finds spans uses them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "formats/program.h"

namespace ferry {

using Statements = std::vector<Statement>;

// How a statement uses a slot: it reads the slot, assigns its tensor or its edge, frees it, or
// gives a global another storage.
enum class Role : std::uint8_t { kRead, kTensor, kEdge, kFree, kMove };

// Calls `see(slot, role)` for each slot of a statement; with a reference if the action is mutable.
template <class See>
struct SlotVisitor {
  See& see;

  void all(auto& slots, Role role) const {
    for (auto& slot : slots) see(slot, role);
  }
  void operator()(auto& action) const {
    using Kind = std::remove_cvref_t<decltype(action)>;
    if constexpr (std::is_same_v<Kind, Op> || std::is_same_v<Kind, Call>) {
      all(action.in, Role::kRead);
      all(action.out, Role::kTensor);
    } else if constexpr (std::is_same_v<Kind, View>) {
      see(action.of, Role::kRead);
      see(action.out, Role::kTensor);
    } else if constexpr (std::is_same_v<Kind, MakeNode>) {
      all(action.in, Role::kRead);
      all(action.out, Role::kEdge);
      all(action.saved, Role::kRead);
    } else if constexpr (std::is_same_v<Kind, Save>) {
      all(action.slots, Role::kRead);
    } else if constexpr (std::is_same_v<Kind, Free>) {
      all(action.slots, Role::kFree);
    } else if constexpr (std::is_same_v<Kind, Backward>) {
      all(action.roots, Role::kRead);
      all(action.inputs, Role::kRead);
      all(action.out, Role::kTensor);
    } else if constexpr (std::is_same_v<Kind, RecordUse>) {
      see(action.slot, Role::kRead);
    } else if constexpr (std::is_same_v<Kind, Module>) {
      if (action.arguments) all(*action.arguments, Role::kRead);
    } else if constexpr (std::is_same_v<Kind, Move>) {
      see(action.global, Role::kMove);
    }  // Other actions name no slot.
  }
};

template <class Action, class See>
void for_each_slot(Action& action, See see) {
  std::visit(SlotVisitor<See>{see}, action);
}

// Renumbers a frame's slots in the order in which they appear, starting after the globals.
class FrameSlots {
 public:
  explicit FrameSlots(Slot globals) : globals_(globals) {}
  void operator()(Slot& slot) {
    if (slot < globals_ || slot == kNoSlot) return;
    slot = numbers_.try_emplace(slot, globals_ + static_cast<Slot>(numbers_.size())).first->second;
  }

 private:
  const Slot globals_;
  std::map<Slot, Slot> numbers_;
};

// Replaces statements [begin, end), and adjusts the count of every When around them.
inline void splice(Statements& statements, std::size_t begin, std::size_t end, Statements with) {
  for (std::size_t i = 0; i < begin; ++i) {
    auto* when = std::get_if<When>(&statements[i].action);
    if (!when || i + when->count < end - 1) continue;
    when->count += static_cast<std::uint32_t>(with.size());
    when->count -= static_cast<std::uint32_t>(end - begin);
  }
  const auto at = statements.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto after = statements.erase(at, at + static_cast<std::ptrdiff_t>(end - begin));
  statements.insert(after, std::make_move_iterator(with.begin()),
                    std::make_move_iterator(with.end()));
}

// Removes slots from the frees from statement `begin` on, and removes frees that become empty.
template <class Predicate>
void erase_frees(Statements& statements, std::size_t begin, Predicate gone) {
  for (std::size_t i = statements.size(); i-- > begin;) {
    auto* free = std::get_if<Free>(&statements[i].action);
    if (free && std::erase_if(free->slots, gone) > 0 && free->slots.empty()) {
      splice(statements, i, i + 1, {});
    }
  }
}

}  // namespace ferry
