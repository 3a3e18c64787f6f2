#include "plan/sliced_loss.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "formats/layout.h"

namespace ferry::plan {
namespace {

bool is_floating(DType dtype) { return dtype <= DType::kF8; }

// Returns the dimension of the classes, which must be contiguous in memory; no value: the tensor
// has no row of classes for each row of the loss. (In the head's weight the other dimension is
// contiguous.)
std::optional<std::size_t> classes_in(const Layout& layout, const Loss& loss) {
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.shape[i] != loss.classes || layout.strides[i] != 1) continue;
    const std::int64_t rows = numel(layout.shape) / loss.classes;
    const bool near = 2 * rows > loss.rows && rows <= 2 * loss.rows;  // shifted labels drop rows
    if (near && is_floating(layout.dtype)) return i;
  }
  return std::nullopt;
}

// Returns the layout of one slice. The classes stay the first or the last dimension.
Layout slice_of(const Layout& layout, std::size_t classes_at, const Loss& loss,
                std::int64_t slices) {
  const std::int64_t all = numel(layout.shape) / loss.classes;
  const std::int64_t rows = (all + slices - 1) / slices;
  if (classes_at == 0 && layout.shape.size() > 1) {
    return {layout.dtype, {loss.classes, rows}, {1, loss.classes}, 0};
  }
  return {layout.dtype, {rows, loss.classes}, {loss.classes, 1}, 0};
}

}  // namespace

std::optional<Loss> loss_of(const Program& program) {
  std::optional<Loss> found;
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      const auto* op = std::get_if<Op>(&statement.action);
      if (!op || op->types.empty() || op->name.find("log_softmax") == std::string::npos) continue;
      const Layout& made = program.types[op->types.front()];
      const bool rows = made.shape.size() == 2 || made.shape.size() == 3;
      if (!rows || made.strides.back() != 1 || made.shape.back() == 0) continue;
      const std::int64_t classes = made.shape.back();
      const Loss loss{op->name, numel(made.shape) / classes, classes};
      if (!found || loss.rows * loss.classes > found->rows * found->classes) found = loss;
    }
  }
  return found;
}

std::optional<Program> with_sliced_loss(const Program& program, std::int64_t slices) {
  const std::optional<Loss> loss = loss_of(program);
  if (!loss) return std::nullopt;
  for (const Global& global : program.globals) {
    const bool is_weight = global.kind == GlobalKind::kParameter;
    if (is_weight && classes_in(program.types[global.type], *loss)) return std::nullopt;
  }
  Program sliced = program;
  std::map<TypeId, TypeId> slice;  // from types of the loss's shape to types of one slice
  const auto replace = [&](TypeId& type) {
    const auto at = classes_in(program.types[type], *loss);
    if (!at) return;
    const auto [known, is_new] = slice.try_emplace(type, static_cast<TypeId>(sliced.types.size()));
    if (is_new) sliced.types.push_back(slice_of(program.types[type], *at, *loss, slices));
    type = known->second;
  };
  for (Code& code : sliced.codes) {
    for (Statement& statement : code.statements) {
      if (auto* op = std::get_if<Op>(&statement.action)) {
        std::for_each(op->types.begin(), op->types.end(), replace);
      } else if (auto* view = std::get_if<View>(&statement.action)) {
        replace(view->type);
      }
    }
  }
  return sliced;
}

}  // namespace ferry::plan
