// Prepares a kernel for its launches: finds each operation's function, rejects what is not run, and
// finds what a launch needs to know beforehand (launch.h).
#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/error.h"
#include "vgpu/triton/launch.h"
#include "vgpu/triton/operations.h"
#include "vgpu/triton/reader.h"
#include "vgpu/triton/slices.h"

namespace ferry::vgpu::triton {
namespace {

class Preparation {
 public:
  explicit Preparation(Kernel& kernel) : kernel_(kernel) {}

  void prepare() {
    for (Function& function : kernel_.module.functions) {
      function_ = &function;
      for (const ValueId argument : function.arguments) check_type(argument, nullptr);
      prepare(function.body);
    }
    for (const auto& id : atomic_results_) {
      kernel_.is_sequential = kernel_.is_sequential || used_.contains(id);
    }
  }

 private:
  [[noreturn]] void reject(const std::string& what, const Op* op) const {
    throw std::runtime_error(
        (op == nullptr ? "" : to_string(kernel_.module.locations[op->location]) + ": ") +
        "the virtual GPU does not run " + what + " (kernel " + kernel_.name + ")");
  }

  void check_type(ValueId id, const Op* op) const {
    const Type& type = function_->types[id];
    if (type.elem == Elem::kOther || type.pointee == Elem::kPointer || !type.other.empty()) {
      reject("values of type " + (type.other.empty() ? "pointer to pointer" : type.other), op);
    }
    if (static_cast<int>(type.shape.size()) + 1 > kMostAxes) reject("tensors of so many axes", op);
  }

  void prepare(Region& region) {
    if (region.blocks.size() > 1) sort(region);
    for (std::size_t i = 0; i < region.blocks.size(); ++i) {
      BasicBlock& block = region.blocks[i];
      for (Op& op : block.ops) {
        prepare(op);
        for (const Successor& next : op.successors) check_forward(region, i, next, op);
      }
      if (block.ops.empty() || !is_terminator(block.ops.back().name)) end(block);
    }
    if (region.blocks.size() == 1) find_deaths(region.blocks[0]);
  }

  // Puts each block behind those that branch to it, where no branch goes in a circle.
  static void sort(Region& region) {
    std::vector<std::size_t> order;  // the last block first
    std::vector<bool> seen(region.blocks.size());
    const std::function<void(std::size_t)> visit = [&](std::size_t number) {
      seen[number] = true;
      for (const Op& op : region.blocks[number].ops) {
        for (const Successor& next : op.successors) {
          for (std::size_t i = 0; i < region.blocks.size(); ++i) {
            if (!seen[i] && region.blocks[i].label == next.label) visit(i);
          }
        }
      }
      order.push_back(number);
    };
    visit(0);
    std::vector<BasicBlock> sorted;  // without blocks that nobody comes to
    for (std::size_t i = order.size(); i-- > 0;) {
      sorted.push_back(std::move(region.blocks[order[i]]));
    }
    region.blocks = std::move(sorted);
  }

  // Some regions have no operation at their end, such as a loop that carries nothing.
  void end(BasicBlock& block) const {
    Op op;
    op.name = "scf.yield";
    if (!block.ops.empty()) op.location = block.ops.back().location;
    block.ops.push_back(std::move(op));
  }

  void prepare(Op& op) {
    for (const ValueId operand : op.operands) used_.insert({function_, operand});
    for (const Successor& next : op.successors) {
      for (const ValueId value : next.values) used_.insert({function_, value});
    }
    if (op.name.starts_with("tt.atomic")) {
      for (const ValueId result : op.results) atomic_results_.insert({function_, result});
    }
    if (!is_terminator(op.name)) {
      op.run = find_operation(op.name);
      if (op.run == nullptr) reject(op.name, &op);
    }
    check(op);
    for (const ValueId result : op.results) check_type(result, &op);
    for (Region& region : op.regions) prepare(region);
    check_counts(op);
  }

  // The numbers of values fit each other, so that nothing is read beyond them.
  void check_counts(const Op& op) const {
    const auto need = [&](bool fits) {
      if (!fits) throw InputError(kernel_.name, op.line, "expected as many values as types");
    };
    const bool is_load = op.name == "tt.load" || op.name == "tt.atomic_load";
    const bool is_access = is_load || op.name == "tt.store" || op.name.starts_with("tt.atomic");
    if (is_access) {
      need(op.operands.size() >= (is_load ? 1U : op.name == "tt.atomic_cas" ? 3U : 2U));
      need(function_->types[op.operands[0]].elem == Elem::kPointer);
    }
    if (op.name == "tt.dot") need(op.operands.size() == 3 && op.results.size() == 1);
    need(op.successors.size() < 2 || (op.successors.size() == 2 && !op.operands.empty()));
    const auto end_of = [](const Region& region) -> const Op& {
      return region.blocks.back().ops.back();
    };
    if (op.name == "scf.for") {
      need(op.operands.size() == 3 + op.results.size());
      need(op.regions[0].blocks[0].arguments.size() == 1 + op.results.size());
      need(end_of(op.regions[0]).operands.size() == op.results.size());
    } else if (op.name == "scf.if") {
      need(op.results.empty() || op.regions.size() == 2);
      for (const Region& region : op.regions) {
        need(end_of(region).operands.size() == op.results.size());
      }
    } else if (op.name == "scf.while") {
      need(op.operands.size() == op.regions[0].blocks[0].arguments.size());
      need(end_of(op.regions[0]).operands.size() == 1 + op.results.size());
      need(op.regions[1].blocks[0].arguments.size() == op.results.size());
      need(end_of(op.regions[1]).operands.size() == op.operands.size());
    } else if (op.name == "tt.reduce" || op.name == "tt.scan") {
      need(op.regions.size() == 1 && op.results.size() == op.operands.size());
      need(op.regions[0].blocks[0].arguments.size() == 2 * op.operands.size());
      need(end_of(op.regions[0]).operands.size() == op.operands.size());
    }
  }

  void check(const Op& op) {
    if (op.name == "tt.dot" && !has_product_) {
      kernel_.multiplies = function_->types[op.operands[0]].elem;
      has_product_ = true;
    }
    if (op.name == "tt.extern_elementwise") {
      const auto symbol = op.attributes.find("symbol");
      const std::string name = symbol == op.attributes.end() ? "" : symbol->second;
      if (!has_function(name)) reject("the function " + name, &op);
    }
    if (op.name == "tt.call" &&
        (op.words.empty() || kernel_.module.find(op.words[0].substr(1)) == nullptr)) {
      reject("a call of a function that is not in the kernel", &op);
    }
    const bool is_small = std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId id) {
      return function_->types[id].elem == Elem::kI32;
    });
    if (op.name == "tt.histogram" && !is_small) reject("tt.histogram of such numbers", &op);
  }

  void check_forward(const Region& region, std::size_t from, const Successor& next,
                     const Op& op) const {
    for (std::size_t i = from + 1; i < region.blocks.size(); ++i) {
      if (region.blocks[i].label != next.label) continue;
      if (region.blocks[i].arguments.size() == next.values.size()) return;
    }
    reject("such a branch, perhaps backwards,", &op);
  }

  // Finds the operation after which a value of the block is used no more, also not in regions.
  static void find_deaths(BasicBlock& block) {
    std::unordered_map<ValueId, std::size_t> last;
    for (const ValueId argument : block.arguments) last[argument] = block.ops.size();
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      for (const ValueId result : block.ops[i].results) last[result] = i;
      note_uses(block.ops[i], i, last);
    }
    for (const auto& [id, at] : last) {
      if (at + 1 < block.ops.size()) block.ops[at].dies.push_back(id);
    }
    for (Op& op : block.ops) std::sort(op.dies.begin(), op.dies.end());
  }

  static void note_uses(const Op& op, std::size_t at,
                        std::unordered_map<ValueId, std::size_t>& last) {
    const auto note = [&](ValueId id) {
      if (const auto found = last.find(id); found != last.end()) found->second = at;
    };
    for (const ValueId operand : op.operands) note(operand);
    for (const Successor& next : op.successors) {
      for (const ValueId value : next.values) note(value);
    }
    for (const Region& region : op.regions) {
      for (const BasicBlock& block : region.blocks) {
        for (const Op& inner : block.ops) note_uses(inner, at, last);
      }
    }
  }

  Kernel& kernel_;
  const Function* function_ = nullptr;
  bool has_product_ = false;
  std::set<std::pair<const Function*, ValueId>> used_;
  std::set<std::pair<const Function*, ValueId>> atomic_results_;
};

}  // namespace

void read_kernel(std::string_view ttir, const std::string& name, Kernel& kernel) {
  kernel.name = name;
  kernel.module = read_module(ttir, name);
  auto& functions = kernel.module.functions;
  const auto entry = std::find_if(functions.begin(), functions.end(),
                                  [](const Function& function) { return function.is_public; });
  if (entry == functions.end()) throw InputError(name, 0, "expected a public function");
  Preparation(kernel).prepare();
  kernel.entry = &*entry;
  find_slice(kernel, *entry);
}

}  // namespace ferry::vgpu::triton
