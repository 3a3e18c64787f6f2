#include "scenarios/l2.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <variant>
#include <vector>

#include "formats/layout.h"

namespace ferry {
namespace {

// Follows the statements of one code, and knows the storage of each slot and its size.
class Storages {
 public:
  explicit Storages(const Program& program) : program_(program) {}

  Slot of(Slot slot) const {
    const auto view = storage_.find(slot);
    return view != storage_.end() ? view->second : slot;
  }
  std::int64_t bytes(Slot slot) const {
    const auto found = bytes_.find(of(slot));
    return found != bytes_.end() ? found->second : 0;
  }
  void set_bytes(Slot slot, std::int64_t bytes) { bytes_[slot] = bytes; }
  void see(const Action& action) {
    if (const auto* op = std::get_if<Op>(&action)) {
      for (std::size_t i = 0; i < op->out.size(); ++i) {
        bytes_[op->out[i]] = storage_bytes(program_.types[op->types[i]]);
      }
    } else if (const auto* view = std::get_if<View>(&action)) {
      storage_[view->out] = of(view->of);
    }
  }

 private:
  const Program& program_;
  std::map<Slot, Slot> storage_;        // storages of views
  std::map<Slot, std::int64_t> bytes_;  // sizes of storages, if the code says them
};

// Returns, for each body, the sizes of the gradients that it gets. They are the sizes of the
// outputs of its node.
std::map<CodeId, std::vector<std::int64_t>> gradient_bytes(const Program& program) {
  std::map<CodeId, std::vector<std::int64_t>> sizes;
  for (const Code& code : program.codes) {
    Storages storages(program);
    for (const Statement& statement : code.statements) {
      storages.see(statement.action);
      const auto* node = std::get_if<MakeNode>(&statement.action);
      if (!node) continue;
      std::vector<std::int64_t>& of = sizes[node->body];
      of.clear();
      for (const Slot slot : node->out) of.push_back(storages.bytes(slot));
    }
  }
  return sizes;
}

// True if the action runs kernels that are not an Op's, or changes the stream.
bool interrupts(const Action& action) {
  return std::holds_alternative<Call>(action) || std::holds_alternative<Backward>(action) ||
         std::holds_alternative<SetStream>(action);
}

class Finder {
 public:
  Finder(const Program& program, std::int64_t l2_bytes) : storages_(program), l2_(l2_bytes) {}

  void handed(const std::vector<Slot>& gradients, const std::vector<std::int64_t>& bytes) {
    for (std::size_t i = 0; i < std::min(gradients.size(), bytes.size()); ++i) {
      storages_.set_bytes(gradients[i], bytes[i]);
      last_.insert(gradients[i]);
    }
  }
  void run(Action& action) {
    storages_.see(action);
    if (interrupts(action)) last_.clear();
    auto* op = std::get_if<Op>(&action);
    if (!op) return;
    op->cached_bytes = std::min(found(op->in), op->read_bytes);
    last_.clear();
    for (const Slot slot : op->out) last_.insert(slot);
    for (const std::uint32_t position : op->writes) last_.insert(storages_.of(op->in[position]));
  }

 private:
  std::int64_t found(const std::vector<Slot>& inputs) const {
    std::set<Slot> read;
    for (const Slot slot : inputs) {
      if (slot != kNoSlot) read.insert(storages_.of(slot));
    }
    std::int64_t bytes = 0;
    for (const Slot storage : read) {
      const std::int64_t size = storages_.bytes(storage);
      if (last_.contains(storage) && size <= l2_) bytes += size;
    }
    return bytes;
  }

  Storages storages_;
  std::set<Slot> last_;  // storages that the previous operator made or wrote
  const std::int64_t l2_;
};

}  // namespace

void find_in_l2(const Hardware& hardware, Program& program) {
  const auto gradients = gradient_bytes(program);
  for (CodeId id = 0; id < program.codes.size(); ++id) {
    Code& code = program.codes[id];
    Finder finder(program, hardware.l2_bytes);
    const auto handed = gradients.find(id);
    if (handed != gradients.end()) finder.handed(code.arguments, handed->second);
    for (Statement& statement : code.statements) finder.run(statement.action);
  }
}

}  // namespace ferry
