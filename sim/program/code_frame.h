// A running code: the contents of its slots, the nodes that it made, and the regions that it has
// open. Globals are in every frame.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "formats/program.h"
#include "shared/seam/hooks.h"
#include "sim/program/autograd.h"
#include "sim/program/graph.h"

namespace ferry::sim {

struct CodeFrame {
  // The globals must outlive it.
  explicit CodeFrame(std::vector<Value>& all_globals) : globals(all_globals) {}
  CodeFrame(const CodeFrame&) = delete;
  CodeFrame& operator=(const CodeFrame&) = delete;
  ~CodeFrame() { close(); }

  Value& at(Slot slot) {
    if (slot < globals.size()) return globals[slot];
    return slots[slot - globals.size()];
  }
  // If a statement threw, regions are still open: ends the innermost first.
  void close() {
    while (!excluded.empty()) excluded.pop_back();
  }

  std::vector<Value>& globals;
  CodeId code = 0;
  std::vector<Value> slots;
  std::map<std::uint32_t, std::weak_ptr<Node>> nodes;  // owned by edges only, as in PyTorch
  std::vector<std::unique_ptr<NoHooksGuard<SimAutograd>>> excluded;
};

}  // namespace ferry::sim
