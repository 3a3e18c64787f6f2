#include "sim/run/training/run_parts.h"

#include <algorithm>

#include "sim/check/liveness.h"
#include "sim/gpu/mutex.h"

namespace ferry::sim {

std::vector<check::Hazard> Checkers::hazards(std::vector<check::Hazard> noticed) const {
  if (!hazards_) return noticed;
  for (const auto* found : {&hazards_->lifetime.hazards(), &hazards_->happens_before.hazards()}) {
    noticed.insert(noticed.end(), found->begin(), found->end());
  }
  return noticed;
}

std::vector<check::Hazard> noticed(const Machine& machine, const Tape& tape) {
  std::vector<check::Hazard> all = machine.hazards();
  if (locks().misuse) all.push_back(check::misused_lock(locks().misuse));
  if (locks().held > 0) all.push_back(check::misused_lock("a lock is held for ever"));
  all.insert(all.end(), tape.hazards().begin(), tape.hazards().end());
  return all;
}

std::int64_t optimizer_tensors(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kNoOptimizer:
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kMomentum:
      return 1;
    case Optimizer::kAdam:
    case Optimizer::kAdamW:
      return 2;
  }
  return 0;
}

std::vector<Storage> optimizer_state(const Program& program, Optimizer optimizer, Machine& machine,
                                     const Tape& tape) {
  std::vector<Storage> state;
  for (std::size_t i = 0; i < program.globals.size(); ++i) {
    const Global& global = program.globals[i];
    if (!global.requires_grad || global.alias != kNoSlot) continue;
    const Storage& storage = tape.globals()[i].tensor->storage;
    machine.set_place(storage->place);
    for (std::int64_t n = 0; n < optimizer_tensors(optimizer); ++n) {
      state.push_back(machine.allocate(storage->bytes, machine.compute_stream(storage->device, 0),
                                       Step::kUser, MemoryKind::kOptimizer));
    }
  }
  return state;
}

std::vector<std::uint64_t> read_gradients(const Tape& tape, const check::Values* values) {
  std::vector<std::uint64_t> contents;
  contents.reserve(tape.gradients().size());
  for (const Value& gradient : tape.gradients()) {
    const bool known = values && gradient.tensor;
    contents.push_back(known ? values->read(range_of(gradient.tensor)) : 0);
  }
  return contents;
}

Leftovers leftovers(const Machine& machine, const Tape& tape, std::size_t state) {
  std::vector<const StorageImpl*> alive;
  alive.reserve(tape.globals().size() + tape.gradients().size());
  for (const auto* list : {&tape.globals(), &tape.gradients()}) {
    for (const Value& value : *list) {
      if (value.tensor) alive.push_back(value.tensor->storage.get());
    }
  }
  std::sort(alive.begin(), alive.end());  // counts each once; the order has no effect
  const auto count = std::unique(alive.begin(), alive.end()) - alive.begin();
  Leftovers left;
  left.storages = machine.live_storages() - count -
                  static_cast<std::int64_t>(state + tape.workspaces().count());
  left.events = machine.live_events();
  left.host_bytes = machine.host_pool().stats().in_use_bytes.current;
  return left;
}

}  // namespace ferry::sim
