#include "verify/programs/random_layers.h"

#include <cstddef>
#include <utility>

namespace ferry::verify {

Activation RandomLayers::make(const Region& region, const Layer& layer, Slot w, const Activation& x,
                              bool fails) {
  const CodeId id = region.id;
  const std::vector<Activation>& held = region.held;
  Parts parts;
  parts.out = draft_.sized(layer.size);
  parts.in = {x.slot, w};
  parts.types = {x.type, parts.out};  // the weight has the output's size
  parts.saved = {x.slot, w};
  parts.fails = fails;
  if (layer.skip && !held.empty()) {
    parts.in.push_back(held.back().slot);
    parts.types.push_back(held.back().type);
    parts.saved.push_back(held.back().slot);
  }
  switch (layer.kind) {
    case LayerKind::kLinear:
      break;
    case LayerKind::kSavesOutput:
      return linear(id, parts, true);
    case LayerKind::kSavesView:
      parts.saved[0] = b_.view(id, x.slot, window_of(x.type));
      break;
    case LayerKind::kSavesTwice:
      parts.saved.push_back(x.slot);
      break;
    case LayerKind::kInPlace:
      return in_place(id, std::move(parts));
    case LayerKind::kDeadBranch:
      dead_branch(id, parts);
      break;
    case LayerKind::kEscape:
      return escape(id, x);
    case LayerKind::kSmallView:
      return small_view(id, std::move(parts), x, layer.size);
    case LayerKind::kExcluded:
      return excluded(id, parts);
    case LayerKind::kSideStream:
      return side_stream(region, parts, w, recipe_.segments && (layer.segment & kNoCheck) != 0);
    case LayerKind::kNested:
      return nested(id, parts, recipe_.segments && layer.segment % 2 != 0);
    case LayerKind::kWrittenBetween:
      return written_between(id, std::move(parts), x, w);
  }
  return linear(id, parts, false);
}

Activation RandomLayers::linear(CodeId id, const Parts& parts, bool saves_output) {
  const auto& [in, types, saved, out, fails] = parts;
  const Slot y = b_.slot(id);
  const std::size_t saves = saved.size() + (saves_output ? 1 : 0);
  // The first saved tensor is the first input or, if it is the only one, the weight.
  const TypeId first_saved = saved.size() == 1 ? out : types.front();
  const CodeId body = draft_.make_body(out, types, saves, fails, first_saved);
  const std::uint32_t node = b_.node_id();
  b_.add(id, MakeNode{"LinearBackward", node, in, {y}, saved, body});
  const std::int64_t bytes = storage_bytes(b_.program.types[out]);
  b_.add(id, Op{"linear", in, {y}, {out}, {}, 0, 2 * bytes, bytes, 0});
  if (saves_output) b_.add(id, Save{node, {y}});
  return {y, out};
}

Activation RandomLayers::in_place(CodeId id, Parts parts) {
  const TypeId out = parts.out;
  parts.saved = {parts.in[1]};
  const Activation y = linear(id, parts, false);
  b_.write(id, "relu_", y.slot);
  const Slot z = b_.slot(id);
  const CodeId body = draft_.make_body(out, {out}, 1, false, out);
  const std::uint32_t node = b_.node_id();
  b_.add(id, MakeNode{"ReluBackward", node, {y.slot}, {z}, {}, body});
  b_.add(id, View{z, y.slot, out});
  b_.add(id, Save{node, {z}});
  b_.add(id, Free{{y.slot}});
  return {z, out};
}

// Nothing differentiates this branch, so its backward does not run.
void RandomLayers::dead_branch(CodeId id, Parts parts) {
  parts.fails = false;
  const Activation dead = linear(id, parts, true);
  b_.add(id, Free{{dead.slot}});
}

// Makes y = x * mask. Its backward returns a view of the saved mask as the gradient.
Activation RandomLayers::escape(CodeId id, const Activation& x) {
  const Slot mask = b_.op(id, "mask", {x.slot}, x.type);
  const CodeId body = b_.code(CodeKind::kBody, "EscapeBackward");
  b_.argument(body);
  const Slot saved = b_.saved(body);
  b_.result(body, b_.view(body, saved, x.type));
  const Slot y = b_.slot(id);
  b_.add(id, MakeNode{"EscapeBackward", b_.node_id(), {x.slot}, {y}, {mask}, body});
  b_.add(id, Op{"escape", {x.slot, mask}, {y}, {x.type}, {}, 0, 4096, 4096, 0});
  b_.add(id, Free{{mask}});
  return {y, x.type};
}

// Saves two windows of a large storage that nothing else keeps alive.
Activation RandomLayers::small_view(CodeId id, Parts parts, const Activation& x, int size) {
  std::vector<Slot>& saved = parts.saved;
  const Slot base = b_.op(id, "large", {x.slot}, b_.type({kSizes[3]}));
  for (const int part : {size, 9}) {
    Layout window = contiguous_layout(DType::kBF16, {100'000});
    window.offset = 100'000 * part;
    saved.push_back(b_.view(id, base, b_.layout(window)));
  }
  const Activation y = linear(id, parts, false);
  b_.add(id, Free{{base, saved[saved.size() - 2], saved.back()}});
  return y;
}

Activation RandomLayers::excluded(CodeId id, const Parts& parts) {
  b_.add(id, Exclude{true});
  const Activation y = linear(id, parts, false);
  b_.add(id, Exclude{false});
  return y;
}

Activation RandomLayers::side_stream(const Region& region, const Parts& parts, Slot w, bool late) {
  const CodeId id = region.id;
  // There is no record_use of `aside` for the side stream. It stays alive until this stream has
  // waited for the side stream. A recompute that stops early would drop it before that wait. The
  // core joins only the stream on which a function was called, and knows no other stream that the
  // function uses.
  const bool waits = recipe_.waits_late && region.stream == 0;
  const Slot aside = waits ? b_.op(id, "aside", {w}, parts.out) : Slot{};
  draft_.begin_stream(id, parts.in, region.stream);
  if (waits) b_.add(id, Free{{b_.op(id, "beside", {aside}, parts.out)}});
  const Activation y = linear(id, parts, true);
  Activation result = y;
  if (late) {
    result = saved_late(region, y);
  } else {
    b_.add(id, SetStream{region.stream});
    const Slot meanwhile = b_.op(id, "meanwhile", {w}, parts.out);
    b_.add(id, Free{{meanwhile}});
    draft_.end_stream(id, {y.slot}, region.stream);
  }
  if (waits) b_.add(id, Free{{aside}});
  return result;
}

// Makes a node on the side stream, where this is called. The node saves a tensor that the region's
// stream computes later.
Activation RandomLayers::saved_late(const Region& region, const Activation& y) {
  const CodeId id = region.id;
  const Slot z = b_.slot(id);
  const CodeId body = draft_.make_body(y.type, {y.type}, 1);
  const std::uint32_t node = b_.node_id();
  b_.add(id, MakeNode{"LateBackward", node, {y.slot}, {z}, {}, body});
  b_.add(id, Op{"side", {y.slot}, {z}, {y.type}, {}, 0, 4096, 4096, 0});
  draft_.end_stream(id, {y.slot, z}, region.stream);
  const Slot late = b_.op(id, "late", {z}, y.type);
  b_.add(id, RecordUse{late, region.stream + 1});
  b_.add(id, Save{node, {late}});
  b_.add(id, Free{{late, y.slot}});
  return {z, y.type};
}

// The layer's backward runs a function of its own and differentiates it.
Activation RandomLayers::nested(CodeId id, const Parts& parts, bool recomputes) {
  const CodeId body = b_.code(CodeKind::kBody, "NestedBackward");
  std::vector<Slot> have = {b_.argument(body)};
  for (std::size_t i = 0; i < parts.saved.size(); ++i) have.push_back(b_.saved(body));
  const Slot y1 = b_.slot(body);
  const Slot inner_gradient = b_.slot(body);
  Call call{draft_.inner, {have[1]}, {y1}};
  if (recomputes) call.recompute = Recompute::kCheckpoint;
  b_.add(body, call);
  b_.add(body, Backward{{y1}, {draft_.first}, {inner_gradient}, false, false});
  have.push_back(inner_gradient);
  if (parts.fails) b_.add(body, Raise{"backward fails"});
  for (const TypeId type : parts.types) b_.result(body, b_.op(body, "nested", have, type));
  const Slot y = b_.slot(id);
  b_.add(id, MakeNode{"NestedBackward", b_.node_id(), parts.in, {y}, parts.saved, body});
  b_.add(id, Op{"linear", parts.in, {y}, {parts.out}, {}, 0, 4096, 4096, 0});
  return {y, parts.out};
}

// This is legal: the first save is never unpacked, and the second one has the new version.
Activation RandomLayers::written_between(CodeId id, Parts parts, const Activation& x, Slot w) {
  const Slot own = b_.op(id, "own", {x.slot}, x.type);
  const Parts before{{own, w}, {x.type, parts.out}, {own}, parts.out, false};
  linear(id, before, false);
  b_.write(id, "relu_", own);
  parts.saved.push_back(own);
  const Activation y = linear(id, parts, false);
  b_.add(id, Free{{own}});
  return y;
}

// Returns the type of a strided window in the second half.
TypeId RandomLayers::window_of(TypeId type) {
  const std::int64_t elements = b_.program.types[type].shape[0];
  return b_.layout({DType::kBF16, {elements / 4}, {2}, elements / 2});
}

Activation RandomLayers::dropout(Region& region, const Activation& x) {
  region.random = true;
  const CodeId id = region.id;
  Op draw{"draw", {x.slot}, {b_.slot(id)}, {x.type}, {}, 0, 4096, 4096, 0};
  draw.random = true;
  const Slot mask = draw.out[0];
  b_.add(id, std::move(draw));
  const Slot y = b_.slot(id);
  const CodeId body = draft_.make_body(x.type, {x.type}, 1);
  b_.add(id, MakeNode{"DropoutBackward", b_.node_id(), {x.slot}, {y}, {mask}, body});
  b_.add(id, Op{"dropout", {x.slot, mask}, {y}, {x.type}, {}, 0, 4096, 4096, 0});
  b_.add(id, Free{{mask, x.slot}});
  return {y, x.type, x.graph};
}

Activation RandomLayers::inner_backward(const Region& region, Extra extra, const Layer& layer,
                                        Slot w, const Activation& y) {
  const CodeId id = region.id;
  const Slot first = draft_.first;
  const TypeId scalar = draft_.scalar;
  const bool through =
      extra != Extra::kInnerBackward && layer.kind != LayerKind::kEscape && !layer.frozen;
  const bool creates = extra == Extra::kInnerCreates;
  const Slot s = b_.slot(id);
  const CodeId body = draft_.make_body(scalar, {y.type}, 2, false, y.type);
  b_.add(id, MakeNode{"InnerBackward", b_.node_id(), {y.slot}, {s}, {y.slot, first}, body});
  b_.add(id, Op{"inner", {y.slot, first}, {s}, {scalar}, {}, 0, 0, 0, 0});
  const Slot g = b_.slot(id);
  b_.add(id, Backward{{s}, {through ? w : y.slot}, {g}, through && !creates, creates});
  b_.add(id, RecordUse{g, region.stream});
  b_.add(id, Free{{s}});
  const TypeId type = through ? b_.program.globals[w].type : y.type;
  std::vector<Slot> in = {y.slot};
  std::vector<TypeId> types = {y.type};
  if (creates) {
    in.push_back(g);
    types.push_back(type);
  }
  const Slot z = b_.slot(id);
  const CodeId mixed = draft_.make_body(y.type, types, 2, false, type);
  b_.add(id, MakeNode{"MixBackward", b_.node_id(), in, {z}, {g, y.slot}, mixed});
  b_.add(id, Op{"mix", {y.slot, g}, {z}, {y.type}, {}, 0, 4096, 4096, 0});
  b_.add(id, Free{{g, y.slot}});
  return {z, y.type};
}

}  // namespace ferry::verify
