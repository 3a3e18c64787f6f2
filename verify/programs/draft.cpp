#include "verify/programs/draft.h"

#include <algorithm>
#include <string>
#include <utility>

#include "verify/programs/random_program.h"

namespace ferry::verify {
namespace {

// Returns how often a forward is differentiated. A gradient with its own graph adds one.
int orders_of(const Recipe& recipe) {
  const bool creates =
      std::any_of(recipe.layers.begin(), recipe.layers.end(),
                  [](const Layer& layer) { return layer.extra == Extra::kInnerCreates; });
  return recipe.derivatives + (recipe.segments && creates ? 1 : 0);
}

}  // namespace

Draft::Draft(const Recipe& made_of) : recipe(made_of), orders_(orders_of(made_of)) {
  scalar = b.type({1}, DType::kF32);
  input = b.global(GlobalKind::kInput, b.type({kSizes[1]}, DType::kI64));
  first = b.global(GlobalKind::kParameter, sized(1));
  for (const Layer& layer : recipe.layers) {
    weights.push_back(b.global(GlobalKind::kParameter, sized(layer.size)));
    b.program.globals.back().requires_grad = !layer.frozen;
  }
  inner = make_inner();
}

CodeId Draft::make_body(TypeId out, const std::vector<TypeId>& in, std::size_t saves, bool fails,
                        std::optional<TypeId> first_saved) {
  std::vector<std::optional<TypeId>> saved(saves);
  if (first_saved) saved.front() = first_saved;
  return make_body_of_order(1, {out}, std::move(saved), in, fails);
}

// Makes the body that computes derivatives of this order. `in` has the types of its results. If
// another derivative may follow, the body makes a node that saves everything the results are made
// of. The node leads to those tensors whose type is known here.
CodeId Draft::make_body_of_order(int order, const std::vector<TypeId>& gradients,
                                 std::vector<std::optional<TypeId>> saved,
                                 const std::vector<TypeId>& in, bool fails) {
  const CodeId id = b.code(CodeKind::kBody, "Backward" + std::to_string(order));
  std::vector<Slot> have;
  have.reserve(gradients.size() + saved.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) have.push_back(b.argument(id));
  for (std::size_t i = 0; i < saved.size(); ++i) have.push_back(b.saved(id));
  if (fails) b.add(id, Raise{"backward fails"});
  std::vector<Slot> results;
  results.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) results.push_back(b.slot(id));
  if (order < orders_) {
    saved.insert(saved.begin(), gradients.begin(), gradients.end());
    std::vector<Slot> from;
    std::vector<TypeId> types;
    for (std::size_t i = 0; i < have.size(); ++i) {
      if (!saved[i]) continue;
      from.push_back(have[i]);
      types.push_back(*saved[i]);
    }
    const CodeId next = make_body_of_order(order + 1, in, std::move(saved), types, false);
    b.add(id, MakeNode{"BackwardBackward", b.node_id(), from, results, have, next});
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    Op op{gradient_op(order, i), have, {results[i]}, {in[i]}, {}, 0, 0, 0, 0};
    b.add(id, std::move(op));
    b.result(id, results[i]);
  }
  return id;
}

// Makes the function y = f(a, w).
CodeId Draft::make_inner() {
  const CodeId id = b.code(CodeKind::kSegment, "inner");
  const Slot a = b.argument(id);
  const Slot y = b.slot(id);
  const CodeId body = make_body(scalar, {sized(1)}, 2);
  b.add(id, MakeNode{"InnerBackward", b.node_id(), {first}, {y}, {a, first}, body});
  b.add(id, Op{"inner", {a, first}, {y}, {scalar}, {}, 0, 0, 0, 0});
  b.result(id, y);
  return id;
}

void Draft::begin_stream(CodeId id, const std::vector<Slot>& in, std::uint32_t from) {
  b.add(id, Sync{from, from + 1});
  b.add(id, SetStream{from + 1});
  for (const Slot slot : in) b.add(id, RecordUse{slot, from + 1});
}

void Draft::end_stream(CodeId id, const std::vector<Slot>& out, std::uint32_t from) {
  b.add(id, SetStream{from});
  for (const Slot slot : out) b.add(id, RecordUse{slot, from});
  b.add(id, Sync{from + 1, from});
}

}  // namespace ferry::verify
