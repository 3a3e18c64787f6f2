#include "scenarios/op_signature.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "formats/layout.h"

namespace ferry {
namespace {

using Types = std::map<Slot, TypeId>;

// Finds the layouts of the globals, and of the slots of each code, if statements give them. For a
// code that runs several times, the layouts of its first run count: nodes that share a body have
// equal layouts in it.
class SlotTypes {
 public:
  explicit SlotTypes(const Program& program)
      : program_(program), types_(program.codes.size()), seen_(program.codes.size()) {
    visit(program.main);
    for (CodeId code = 0; code < program.codes.size(); ++code) visit(code);
  }

  std::optional<Layout> layout(CodeId code, Slot slot) const {
    const std::optional<TypeId> type = find(types_[code], slot);
    if (!type) return std::nullopt;
    return program_.types[*type];
  }

 private:
  std::optional<TypeId> find(const Types& types, Slot slot) const {
    if (slot < program_.globals.size()) return program_.globals[slot].type;
    const auto found = types.find(slot);
    if (found == types.end()) return std::nullopt;
    return found->second;
  }

  using Nodes = std::map<std::uint32_t, std::pair<CodeId, std::size_t>>;

  void visit(CodeId id) {
    if (seen_[id]) return;
    seen_[id] = true;
    Types& types = types_[id];
    Nodes nodes;  // the body of each node, and the number of slots that it has saved
    const auto save = [&](std::uint32_t node, const std::vector<Slot>& slots) {
      auto& [body, saved] = nodes[node];
      for (const Slot slot : slots) hand(types, slot, body, program_.codes[body].saved, saved++);
    };
    for (const Statement& statement : program_.codes[id].statements) {
      if (const auto* op = std::get_if<Op>(&statement.action)) {
        for (std::size_t i = 0; i < op->out.size(); ++i) types[op->out[i]] = op->types[i];
      } else if (const auto* view = std::get_if<View>(&statement.action)) {
        types[view->out] = view->type;
      } else if (const auto* node = std::get_if<MakeNode>(&statement.action)) {
        nodes[node->id] = {node->body, 0};
        save(node->id, node->saved);
      } else if (const auto* more = std::get_if<Save>(&statement.action)) {
        save(more->node, more->slots);
      } else if (const auto* called = std::get_if<Call>(&statement.action)) {
        call(types, *called);
      }
    }
  }

  void call(Types& types, const Call& call) {
    const Code& code = program_.codes[call.code];
    for (std::size_t i = 0; i < call.in.size(); ++i) {
      hand(types, call.in[i], call.code, code.arguments, i);
    }
    visit(call.code);
    for (std::size_t i = 0; i < call.out.size() && i < code.results.size(); ++i) {
      const std::optional<TypeId> type = find(types_[call.code], code.results[i]);
      if (type) types.emplace(call.out[i], *type);
    }
  }

  void hand(const Types& from, Slot slot, CodeId to, const std::vector<Slot>& takers,
            std::size_t at) {
    const std::optional<TypeId> type = find(from, slot);
    if (type && at < takers.size()) types_[to].emplace(takers[at], *type);
  }

  const Program& program_;
  std::vector<Types> types_;
  std::vector<bool> seen_;
};

Layout plain(Layout layout) {
  layout.offset = 0;
  const std::vector<std::int64_t> contiguous = contiguous_strides(layout.shape);
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.shape[i] == 1) layout.strides[i] = contiguous[i];
  }
  return layout;
}

}  // namespace

OpSignature canonical(OpSignature signature) {
  for (std::optional<Layout>& in : signature.in) {
    if (in) in = plain(*std::move(in));
  }
  for (Layout& out : signature.out) out = plain(std::move(out));
  return signature;
}

void each_op(Program& program, const std::function<void(Op&, const OpSignature&)>& see) {
  const SlotTypes types(program);
  for (CodeId code = 0; code < program.codes.size(); ++code) {
    for (Statement& statement : program.codes[code].statements) {
      auto* const op = std::get_if<Op>(&statement.action);
      if (!op) continue;
      OpSignature signature{op->name,         {}, {}, op->writes, op->flops, op->read_bytes,
                            op->written_bytes};
      for (const Slot slot : op->in) signature.in.push_back(types.layout(code, slot));
      for (const TypeId type : op->types) signature.out.push_back(program.types[type]);
      see(*op, canonical(std::move(signature)));
    }
  }
}

}  // namespace ferry
