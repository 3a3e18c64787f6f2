#include "verify/schedulers/programs.h"

#include <vector>

#include "formats/builder.h"
#include "sim/choices/draws.h"

namespace ferry::verify::schedulers {
namespace {

class LayoutsProgram {
 public:
  explicit LayoutsProgram(std::uint64_t number)
      : draws_(0, number), rows_(16 << draws_.in(0, 3)), columns_(16 << draws_.in(0, 3)) {
    const TypeId scalar = b_.type({1}, DType::kF32);
    const TypeId matrix = b_.type({rows_, columns_});
    const Slot input = b_.global(GlobalKind::kInput, matrix);
    const Slot weight = b_.global(GlobalKind::kParameter, matrix);
    const CodeId forward = b_.code(CodeKind::kSegment, "forward");
    Slot x = layer(forward, "embed", weight, input, matrix, matrix, {input});
    for (int layers = draws_.in(1, 7); layers > 0; --layers) {
      x = layer(forward, "linear", x, weight, matrix, matrix, saves(forward, x));
    }
    b_.result(forward, layer(forward, "loss", x, weight, matrix, scalar, {x}));
    for (int steps = draws_.in(1, 3); steps > 0; --steps) {
      const Slot loss = b_.slot(0);
      b_.add(0, Call{forward, {}, {loss}});
      b_.add(0, Backward{{loss}, {}, {}, false, false});
      b_.add(0, Free{{loss}});
    }
  }
  Program take() { return std::move(b_.program); }

 private:
  // Adds out = f(x, other). Only x has a gradient.
  Slot layer(CodeId id, const char* name, Slot x, Slot other, TypeId in, TypeId out,
             const std::vector<Slot>& saved) {
    const CodeId body = b_.code(CodeKind::kBody, "Backward");
    std::vector<Slot> have{b_.argument(body)};
    for (std::size_t i = 0; i < saved.size(); ++i) have.push_back(b_.saved(body));
    b_.result(body, b_.op(body, "gradient", have, in));
    const Slot y = b_.op(id, name, {x, other}, out);
    const std::uint32_t node = b_.node_id();
    b_.add(id, MakeNode{"Backward", node, {x}, {y}, saved, body});
    return y;
  }

  std::vector<Slot> saves(CodeId id, Slot x) {
    std::vector<Slot> saved;
    for (int count = draws_.in(1, 4); count > 0; --count) {
      saved.push_back(b_.view(id, x, b_.layout(a_layout())));
    }
    return saved;
  }

  Layout a_layout() {
    switch (draws_.in(0, 3)) {
      case 0:
        return contiguous_layout(DType::kBF16, {rows_, columns_});
      case 1:
        return contiguous_layout(DType::kBF16, {rows_ * columns_});
      default:
        return {DType::kBF16, {columns_, rows_}, {1, columns_}, 0};
    }
  }

  choices::Draws draws_;
  const std::int64_t rows_;
  const std::int64_t columns_;
  Builder b_;
};

}  // namespace

Program layouts_program(std::uint64_t number) { return LayoutsProgram(number).take(); }

}  // namespace ferry::verify::schedulers
