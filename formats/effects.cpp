#include "formats/effects.h"

#include <algorithm>
#include <variant>

namespace ferry {
namespace {

// Reads a code's statements in order.
class Reader {
 public:
  Reader(const Program& program, EffectsOf& effects_of, CodeId id)
      : program_(program), effects_of_(effects_of), code_(program.codes[id]) {
    for (const auto* slots : {&code_.arguments, &code_.saved}) {
      for (const Slot slot : *slots) {
        slots_[slot] = {.input = effects_.inputs.size(), .type = {}, .tensor = true};
        effects_.inputs.emplace_back();
      }
    }
  }

  Effects read() {
    for (const Statement& statement : code_.statements) {
      line_ = statement.line;
      std::visit(*this, statement.action);
    }
    for (const Slot slot : code_.results) effects_.results.push_back(find(slot));
    return std::move(effects_);
  }

  void operator()(const Op& op) {
    for (const std::uint32_t position : op.writes) write(op.in[position], line_);
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      slots_[op.out[i]] = {.input = {}, .type = op.types[i], .tensor = true};
    }
  }
  void operator()(const View& view) {
    const Effects::Result of = find(view.of);
    this->view(of, {hull(program_.types[view.type]), line_});
    slots_[view.out] = {.input = of.input, .type = view.type, .tensor = true};
    if (const Slot global = global_of(view.of); global != kNoSlot) global_views_[view.out] = global;
  }
  void operator()(const MakeNode& node) {
    bodies_[node.id] = {node.body, program_.codes[node.body].arguments.size()};
    save(node.id, node.saved);
  }
  void operator()(const Save& saves) { save(saves.node, saves.slots); }
  void operator()(const Call& call);
  void operator()(const Backward& backward) {
    for (const Slot slot : backward.out) slots_[slot].tensor = true;
  }
  void operator()(const Move& move) { effects_.written_globals.try_emplace(move.global, line_); }
  void operator()(const auto&) {}

 private:
  bool is_global(Slot slot) const { return slot < program_.globals.size(); }
  Slot global_of(Slot slot) const {
    if (is_global(slot)) return slot;
    const auto found = global_views_.find(slot);
    return found == global_views_.end() ? kNoSlot : found->second;
  }
  Effects::Result find(Slot slot) const {
    if (is_global(slot)) {
      return {.input = {}, .type = program_.globals[slot].type, .tensor = true};
    }
    const auto found = slots_.find(slot);
    return found == slots_.end() ? Effects::Result() : found->second;
  }
  void view(const Effects::Result& of, const Effects::Window& window) {
    if (of.input) effects_.inputs[*of.input].viewed.push_back(window);
  }
  void write(Slot slot, std::uint32_t line) {
    if (const Slot global = global_of(slot); global != kNoSlot) {
      effects_.written_globals.try_emplace(global, line);
    }
    const Effects::Result of = find(slot);
    if (!of.input) return;
    auto& written = effects_.inputs[*of.input].written;
    if (!written) written = line;
  }
  // The node's body will read the tensors saved for it.
  void save(std::uint32_t node, const std::vector<Slot>& slots) {
    auto& [body, position] = bodies_.at(node);
    const Effects& effects = effects_of_(body);
    for (const Slot slot : slots) {
      const Effects::Result of = find(slot);
      if (position >= effects.inputs.size()) return;
      for (const Effects::Window& window : effects.inputs[position++].viewed) view(of, window);
    }
  }

  const Program& program_;
  EffectsOf& effects_of_;
  const Code& code_;
  std::uint32_t line_ = 0;
  Effects effects_;
  std::map<Slot, Effects::Result> slots_;
  std::map<Slot, Slot> global_views_;
  std::map<std::uint32_t, std::pair<CodeId, std::size_t>> bodies_;  // and its next saved input
};

void Reader::operator()(const Call& call) {
  const Effects& callee = effects_of_(call.code);
  for (const auto& [global, line] : callee.written_globals) {
    effects_.written_globals.try_emplace(global, line);
  }
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const Effects::Result of = find(call.in[i]);
    for (const Effects::Window& window : callee.inputs[i].viewed) view(of, window);
    if (callee.inputs[i].written) write(call.in[i], *callee.inputs[i].written);
  }
  for (std::size_t i = 0; i < call.out.size(); ++i) {
    Effects::Result result = callee.results[i];
    if (result.input) {
      const Slot from = call.in[*result.input];
      const Effects::Result of = find(from);
      result = {
          .input = of.input, .type = result.type ? result.type : of.type, .tensor = of.tensor};
      if (const Slot global = global_of(from); global != kNoSlot) {
        global_views_[call.out[i]] = global;
      }
    }
    slots_[call.out[i]] = result;
  }
}

}  // namespace

const Effects& EffectsOf::operator()(CodeId code) {
  const auto [at, fresh] = found_.try_emplace(code);
  if (!fresh) return at->second;
  // A body may belong to a node that it makes itself: it then finds inputs of unknown effects.
  at->second.inputs.resize(program_.codes[code].arguments.size() +
                           program_.codes[code].saved.size());
  at->second.results.resize(program_.codes[code].results.size());
  return at->second = Reader(program_, *this, code).read();
}

}  // namespace ferry
