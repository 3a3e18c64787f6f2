// A forward of parts, of which some are segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/builder.h"

namespace ferry::test {

enum class PartKind : std::uint8_t { kPlain, kSegment, kReentrant, kNested, kExcluded };

// Layers in a row: in the forward itself, in a segment, in a segment in one, or in a segment whose
// surroundings no hook sees. Without layers it is one op that saves nothing.
struct Part {
  PartKind kind = PartKind::kSegment;
  int layers = 1;
  bool takes_input = false;  // a segment is also handed the program's input
};

struct SegmentedShape {
  std::int64_t elements = 1024;        // of every activation, in bf16
  std::int64_t inner_elements = 1024;  // within a layer
  std::int64_t weight_elements = 1024;
  std::int64_t op_ns = 100;
};

// A layer is h = up(x, w), y = down(h), and saves x, w and h. Neither what comes before the first
// part nor the loss saves anything.
class Segmented {
 public:
  explicit Segmented(const SegmentedShape& shape) : shape_(shape) {
    b_.program.name = "segmented";
    type_ = b_.type({shape.elements});
    inner_ = b_.type({shape.inner_elements});
    weight_ = b_.type({shape.weight_elements});
    scalar_ = b_.type({1}, DType::kF32);
  }

  Program make(const std::vector<Part>& parts) {
    input_ = b_.global(GlobalKind::kInput, type_);
    const Slot first = b_.global(GlobalKind::kParameter, weight_);
    for (const Part& part : parts) {
      for (int i = 0; i < part.layers; ++i) {
        weights_.push_back(b_.global(GlobalKind::kParameter, weight_));
      }
    }
    const CodeId forward = b_.code(CodeKind::kSegment, "forward");
    Slot x = node(forward, "Embed", {first}, {}, type_, {weight_});
    for (const Part& part : parts) {
      const Slot y = run(forward, part, x);
      b_.add(forward, Free{{x}});
      x = y;
    }
    b_.result(forward, node(forward, "Loss", {x}, {}, scalar_, {type_}));
    const Slot loss = b_.slot(0);
    b_.add(0, Call{forward, {}, {loss}});
    b_.add(0, Backward{{loss}, {}, {}, false, false});
    return std::move(b_.program);
  }

 private:
  void timed(CodeId id, std::string name, std::vector<Slot> in, Slot out, TypeId type) {
    b_.add(id, Op{std::move(name), std::move(in), {out}, {type}, {}, 0, 0, 0, shape_.op_ns});
  }

  // y = op(in), whose backward is an op for each input, on all that was saved.
  Slot node(CodeId id, const std::string& name, const std::vector<Slot>& in,
            const std::vector<Slot>& saved, TypeId out, const std::vector<TypeId>& types) {
    const CodeId body = b_.code(CodeKind::kBody, name + "Backward");
    std::vector<Slot> have = {b_.argument(body)};
    for (std::size_t i = 0; i < saved.size(); ++i) have.push_back(b_.saved(body));
    for (const TypeId type : types) {
      const Slot gradient = b_.slot(body);
      timed(body, "grad_" + name, have, gradient, type);
      b_.result(body, gradient);
    }
    const Slot y = b_.slot(id);
    b_.add(id, MakeNode{name + "Backward", b_.node_id(), in, {y}, saved, body});
    timed(id, name, in, y, out);
    return y;
  }

  Slot layer(CodeId id, Slot x) {
    const Slot w = weights_[at_++];
    const Slot h = node(id, "Up", {x, w}, {x, w}, inner_, {type_, weight_});
    const Slot y = node(id, "Down", {h}, {h}, type_, {inner_});
    b_.add(id, Free{{h}});
    return y;
  }
  Slot layers(CodeId id, const Part& part, Slot x) {
    if (part.layers == 0) return node(id, "Add", {x}, {}, type_, {type_});
    const Slot given = x;
    for (int i = 0; i < part.layers; ++i) {
      const Slot y = layer(id, x);
      if (x != given) b_.add(id, Free{{x}});
      x = y;
    }
    return x;
  }

  Slot run(CodeId forward, const Part& part, Slot x) {
    if (part.kind == PartKind::kPlain) return layers(forward, part, x);
    const std::string name = "part." + std::to_string(parts_++);
    const CodeId segment = b_.code(CodeKind::kSegment, name);
    const Slot argument = b_.argument(segment);
    if (part.takes_input) b_.argument(segment);
    if (part.kind == PartKind::kNested) {
      const CodeId inside = b_.code(CodeKind::kSegment, name + ".inside");
      b_.result(inside, layers(inside, part, b_.argument(inside)));
      b_.result(segment, call(segment, inside, {argument}, Recompute::kCheckpoint));
    } else {
      b_.result(segment, layers(segment, part, argument));
    }
    std::vector<Slot> in = {x};
    if (part.takes_input) in.push_back(input_);
    if (part.kind == PartKind::kExcluded) b_.add(forward, Exclude{true});
    const Slot y =
        call(forward, segment, in,
             part.kind == PartKind::kReentrant ? Recompute::kReentrant : Recompute::kCheckpoint);
    if (part.kind == PartKind::kExcluded) b_.add(forward, Exclude{false});
    return y;
  }
  Slot call(CodeId from, CodeId segment, std::vector<Slot> in, Recompute recompute) {
    const Slot y = b_.slot(from);
    Call call{segment, std::move(in), {y}};
    call.recompute = recompute;
    b_.add(from, std::move(call));
    return y;
  }

  const SegmentedShape shape_;
  Builder b_;
  TypeId type_ = 0;
  TypeId inner_ = 0;
  TypeId weight_ = 0;
  TypeId scalar_ = 0;
  Slot input_ = 0;
  std::vector<Slot> weights_;
  std::size_t at_ = 0;
  int parts_ = 0;
};

inline Program segmented(const std::vector<Part>& parts, const SegmentedShape& shape = {}) {
  return Segmented(shape).make(parts);
}

}  // namespace ferry::test
