#include "vgpu/triton/slices.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ferry::vgpu::triton {
namespace {

bool is_load(const Op& op) { return op.name == "tt.load" || op.name == "tt.atomic_load"; }
bool is_store(const Op& op) { return op.name == "tt.store" || op.name == "tt.atomic_store"; }
bool is_atomic(const Op& op) {
  return op.name.starts_with("tt.atomic") && !is_load(op) && !is_store(op);
}
bool is_access(const Op& op) { return is_atomic(op) || is_load(op) || is_store(op); }

const Op& end_of(const Region& region) { return region.blocks.back().ops.back(); }

class Slice {
 public:
  Slice(Kernel& kernel, Function& entry)
      : kernel_(kernel),
        entry_(entry),
        sources_(entry.types.size()),
        made_by_(entry.types.size(), nullptr),
        by_data_(entry.types.size()),
        needed_(entry.types.size()) {}

  void find() {
    walk(entry_.body);
    for (bool changed = true; changed;) {
      changed = false;
      for (ValueId id = 0; id < sources_.size(); ++id) changed = spread_to(id) || changed;
    }
    mark(entry_.body, true);
    keep(kernel_.may_read, reads_);
    keep(kernel_.may_write, writes_);
  }

 private:
  void feed(ValueId to, ValueId from) { sources_[to].push_back(from); }

  // Notes what each value is computed from.
  void walk(Region& region) {
    std::vector<ValueId> decides;  // which blocks run
    for (BasicBlock& block : region.blocks) {
      for (Op& op : block.ops) {
        for (const ValueId result : op.results) made_by_[result] = &op;
        for (Region& inner : op.regions) walk(inner);
        note(op);
        if (op.successors.size() > 1) decides.push_back(op.operands[0]);
        for (const Successor& next : op.successors) note_branch(region, next, decides);
      }
    }
  }

  void note_branch(const Region& region, const Successor& next,
                   const std::vector<ValueId>& decides) {
    for (const BasicBlock& block : region.blocks) {
      if (block.label != next.label) continue;
      for (std::size_t i = 0; i < next.values.size(); ++i) {
        feed(block.arguments[i], next.values[i]);
        for (const ValueId decision : decides) feed(block.arguments[i], decision);
      }
    }
  }

  void note(const Op& op) {
    if (op.name == "scf.for") return note_for(op);
    if (op.name == "scf.while") return note_while(op);
    const bool is_if = op.name == "scf.if";
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      for (const ValueId operand : op.operands) feed(op.results[i], operand);
      for (const Region& region : op.regions) {
        const Op& end = end_of(region);
        if (is_if) feed(op.results[i], end.operands[i]);
      }
    }
    if (is_if) return;
    for (const Region& region : op.regions) {  // a combiner may use values from outside
      for (const BasicBlock& block : region.blocks) {
        for (const Op& inner : block.ops) {
          for (const ValueId operand : inner.operands) {
            for (const ValueId result : op.results) feed(result, operand);
          }
        }
      }
    }
  }

  void note_for(const Op& op) {
    const auto& arguments = op.regions[0].blocks[0].arguments;
    const Op& end = end_of(op.regions[0]);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      for (std::size_t bound = 0; bound < 3; ++bound) feed(arguments[i], op.operands[bound]);
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      feed(arguments[1 + i], op.operands[3 + i]);
      feed(arguments[1 + i], end.operands[i]);
      feed(op.results[i], arguments[1 + i]);
    }
  }

  void note_while(const Op& op) {
    const auto& carried = op.regions[0].blocks[0].arguments;
    const auto& turns = op.regions[1].blocks[0].arguments;
    const Op& decides = end_of(op.regions[0]);
    const Op& end = end_of(op.regions[1]);
    for (std::size_t i = 0; i < carried.size(); ++i) {
      feed(carried[i], op.operands[i]);
      feed(carried[i], end.operands[i]);
      feed(carried[i], decides.operands[0]);
    }
    for (std::size_t i = 0; i + 1 < decides.operands.size(); ++i) {
      for (const ValueId to : {turns[i], op.results[i]}) {
        feed(to, decides.operands[i + 1]);
        feed(to, decides.operands[0]);
      }
    }
  }

  // Marks the value if it depends on loaded data. Returns whether that is new.
  bool spread_to(ValueId id) {
    if (by_data_[id]) return false;
    const Op* const op = made_by_[id];
    bool depends = op != nullptr && (is_load(*op) || is_atomic(*op) || op->name == "tt.call");
    for (const ValueId source : sources_[id]) depends = depends || by_data_[source];
    by_data_[id] = depends;
    return depends;
  }

  void need(ValueId id) {
    std::vector<ValueId> stack{id};
    while (!stack.empty()) {
      const ValueId next = stack.back();
      stack.pop_back();
      if (needed_[next]) continue;
      needed_[next] = true;
      for (const ValueId source : sources_[next]) stack.push_back(source);
    }
  }

  // The operands that say which memory an access touches: the pointer, and the mask.
  static std::vector<ValueId> address_of(const Op& op) {
    std::vector<ValueId> ids{op.operands[0]};
    const std::size_t mask = is_load(op) ? 1 : 2;
    if (op.name != "tt.atomic_cas" && op.operands.size() > mask) ids.push_back(op.operands[mask]);
    return ids;
  }

  // Marks the operations of the slice. `is_exact` says that whether these run depends on no loaded
  // data. Returns whether one of them is in the slice.
  bool mark(Region& region, bool is_exact) {
    // First what must be known, then what computes it: a loop may use what stands behind it.
    note_accesses(region, is_exact);
    return mark_needed(region);
  }

  void note_accesses(Region& region, bool is_exact) {
    for (BasicBlock& block : region.blocks) {
      for (Op& op : block.ops) {
        if (op.name == "tt.call") note_call(op);
        if (is_access(op)) {
          note_access(op, is_exact);
        } else if (op.name == "tt.dot" && is_exact) {
          op.in_slice = true;
        }
        bool inner = is_exact;
        for (const ValueId decision : decisions(op)) inner = inner && !by_data_[decision];
        if (op.name != "tt.reduce" && op.name != "tt.scan") {
          for (Region& each : op.regions) note_accesses(each, inner);
        }
        for (const Region& each : op.regions) {
          if (inner && has_slice(each)) {
            for (const ValueId decision : decisions(op)) need(decision);
          }
        }
        // Blocks behind a branch that depends on data may not run.
        if (op.successors.size() > 1) {
          is_exact = is_exact && !by_data_[op.operands[0]];
          if (is_exact) need(op.operands[0]);
        }
      }
    }
  }

  static bool has_slice(const Region& region) {
    for (const BasicBlock& block : region.blocks) {
      for (const Op& op : block.ops) {
        if (op.in_slice) return true;
        for (const Region& inner : op.regions) {
          if (has_slice(inner)) return true;
        }
      }
    }
    return false;
  }

  // The values that say whether, and how often, the regions of an operation run.
  static std::vector<ValueId> decisions(const Op& op) {
    if (op.name == "scf.for") return {op.operands[0], op.operands[1], op.operands[2]};
    if (op.name == "scf.if") return {op.operands[0]};
    if (op.name == "scf.while") return {end_of(op.regions[0]).operands[0]};
    return {};
  }

  void note_access(Op& op, bool is_exact) {
    for (const ValueId id : address_of(op)) is_exact = is_exact && !by_data_[id];
    op.in_slice = is_exact;
    if (is_exact) {
      for (const ValueId id : address_of(op)) need(id);
      return;
    }
    std::set<ValueId> seen;
    if (!is_store(op)) note_bases(op.operands[0], reads_, seen);
    seen.clear();
    if (!is_load(op)) note_bases(op.operands[0], writes_, seen);
  }

  // A function may do anything through the pointers that it is given.
  void note_call(const Op& op) {
    for (const ValueId operand : op.operands) {
      std::set<ValueId> seen;
      note_bases(operand, reads_, seen);
      seen.clear();
      note_bases(operand, writes_, seen);
    }
  }

  // Finds the arguments that a pointer may come from. A pointer that was loaded or made of a number
  // may come from any.
  void note_bases(ValueId id, std::set<ValueId>& bases, std::set<ValueId>& seen) {
    if (!seen.insert(id).second || entry_.types[id].elem != Elem::kPointer) return;
    const auto& arguments = entry_.arguments;
    if (std::find(arguments.begin(), arguments.end(), id) != arguments.end()) {
      bases.insert(id);
      return;
    }
    bool has_source = false;
    for (const ValueId source : sources_[id]) {
      has_source = has_source || entry_.types[source].elem == Elem::kPointer;
    }
    const Op* const op = made_by_[id];
    if (!has_source || (op != nullptr && is_load(*op))) {
      bases.insert(arguments.begin(), arguments.end());
      return;
    }
    for (const ValueId source : sources_[id]) note_bases(source, bases, seen);
  }

  bool mark_needed(Region& region) {
    bool some = false;
    for (BasicBlock& block : region.blocks) {
      for (Op& op : block.ops) {
        for (const ValueId result : op.results) op.in_slice = op.in_slice || needed_[result];
        const bool combines = op.name == "tt.reduce" || op.name == "tt.scan";
        for (Region& inner : op.regions) {
          if (combines) {
            if (op.in_slice) mark_all(inner);
          } else {
            op.in_slice = mark_needed(inner) || op.in_slice;
          }
        }
        some = some || op.in_slice;
      }
    }
    return some;
  }

  static void mark_all(Region& region) {
    for (BasicBlock& block : region.blocks) {
      for (Op& op : block.ops) op.in_slice = true;
    }
  }

  // Turns the numbers of arguments into their positions.
  void keep(std::vector<std::size_t>& positions, const std::set<ValueId>& ids) const {
    for (std::size_t i = 0; i < entry_.arguments.size(); ++i) {
      const ValueId id = entry_.arguments[i];
      if (ids.contains(id) && entry_.types[id].elem == Elem::kPointer) positions.push_back(i);
    }
  }

  Kernel& kernel_;
  Function& entry_;
  std::vector<std::vector<ValueId>> sources_;
  std::vector<const Op*> made_by_;
  std::vector<bool> by_data_;
  std::vector<bool> needed_;
  std::set<ValueId> reads_;
  std::set<ValueId> writes_;
};

}  // namespace

void find_slice(Kernel& kernel, Function& entry) { Slice(kernel, entry).find(); }

}  // namespace ferry::vgpu::triton
