#include "sim/program/prepared.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "formats/hash.h"
#include "formats/layout.h"
#include "formats/program_work.h"

namespace ferry::sim {
namespace {

PreparedCode prepared_code(const Program& program, CodeId id, const KernelTimes& times,
                           const KernelMemory* memory) {
  PreparedCode prepared;
  const Code& code = program.codes[id];
  Slot last = static_cast<Slot>(program.globals.size());
  const auto see = [&last](Slot slot) {
    if (slot != kNoSlot) last = std::max(last, slot + 1);
  };
  for (const auto* slots : {&code.arguments, &code.saved, &code.results}) {
    std::for_each(slots->begin(), slots->end(), see);
  }
  const auto read = [&](std::span<const Slot> slots) {
    prepared.reads_arguments |= std::ranges::find_first_of(slots, code.arguments) != slots.end();
  };
  prepared.ops.resize(code.statements.size());
  for (std::size_t i = 0; i < code.statements.size(); ++i) {
    const Action& action = code.statements[i].action;
    if (const auto* op = std::get_if<Op>(&action)) {
      read(op->in);
      std::for_each(op->out.begin(), op->out.end(), see);
      const TypeId type = !op->types.empty() ? op->types.front() : TypeId{0};
      PreparedOp& made = prepared.ops[i];
      made.time = times.of(*op, op->types.empty() ? DType::kF32 : program.types[type].dtype);
      made.tag = fnv1a(op->name) ^ (std::uint64_t{id} << 32) ^ i;
      made.takes_memory = memory && memory->is_asked(op->name);
      made.makes_last_first = memory && memory->makes_last_first(op->name);
    } else if (const auto* view = std::get_if<View>(&action)) {
      read({&view->of, 1});
      see(view->out);
    } else if (const auto* make = std::get_if<MakeNode>(&action)) {
      std::for_each(make->out.begin(), make->out.end(), see);
    } else if (const auto* call = std::get_if<Call>(&action)) {
      read(call->in);
      std::for_each(call->out.begin(), call->out.end(), see);
    } else if (const auto* backward = std::get_if<Backward>(&action)) {
      std::for_each(backward->out.begin(), backward->out.end(), see);
    }
  }
  prepared.slots = last - program.globals.size();
  prepared.work = own_work(program, id);
  return prepared;
}

}  // namespace

Prepared prepared(const Program& program, const KernelTimes& times, const KernelMemory* memory) {
  Prepared made;
  made.windows.reserve(program.types.size());
  made.codes.reserve(program.codes.size());
  for (const Layout& type : program.types) {
    const Hull bytes = hull(type);
    const Window window{type, {bytes.begin_bytes, bytes.end_bytes}};
    made.own_windows.push_back(std::make_unique<const Window>(window));
    const std::shared_ptr<const void> nobody;
    made.windows.emplace_back(nobody, made.own_windows.back().get());
  }
  for (CodeId id = 0; id < program.codes.size(); ++id) {
    made.codes.push_back(prepared_code(program, id, times, memory));
  }
  return made;
}

}  // namespace ferry::sim
