// A running code: the contents of its slots, the nodes that it made, and its open regions. The tape
// makes one for each run of a code, so a recompute has slots of its own. Globals are visible in
// every frame.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "formats/program.h"
#include "shared/seam/hooks.h"
#include "sim/program/autograd.h"
#include "sim/program/graph.h"

namespace ferry::sim {

// The nodes that a code made, by the numbers that its statements use. Only edges own them, as in
// PyTorch.
class FrameNodes {
 public:
  void set(std::uint32_t number, std::weak_ptr<Node> node) {
    const auto place = find(number);
    if (place != made_.end() && place->first == number) {
      made_[static_cast<std::size_t>(place - made_.begin())].second = std::move(node);
    } else {
      made_.emplace(place, number, std::move(node));  // nearly always at the end
    }
  }
  // Returns null if there was none, or it is gone.
  std::shared_ptr<Node> lock(std::uint32_t number) const {
    const auto place = find(number);
    return place != made_.end() && place->first == number ? place->second.lock() : nullptr;
  }

 private:
  using Made = std::vector<std::pair<std::uint32_t, std::weak_ptr<Node>>>;
  Made::const_iterator find(std::uint32_t number) const {
    if (made_.empty() || made_.back().first < number) return made_.end();
    return std::lower_bound(made_.begin(), made_.end(), number,
                            [](const auto& each, std::uint32_t n) { return each.first < n; });
  }
  Made made_;  // in order
};

struct CodeFrame {
  // The globals must outlive the frame.
  explicit CodeFrame(std::vector<Value>& all_globals) : globals(all_globals) {}
  CodeFrame(const CodeFrame&) = delete;
  CodeFrame& operator=(const CodeFrame&) = delete;
  ~CodeFrame() { close(); }

  Value& at(Slot slot) {
    if (slot < globals.size()) return globals[slot];
    return slots[slot - globals.size()];
  }
  // Ends the regions that are still open, the innermost first. They are open if a statement threw.
  void close() {
    while (!excluded.empty()) excluded.pop_back();
  }

  std::vector<Value>& globals;
  CodeId code = 0;
  std::vector<Value> slots;
  FrameNodes nodes;
  std::vector<std::unique_ptr<NoHooksGuard<SimAutograd>>> excluded;
};

}  // namespace ferry::sim
