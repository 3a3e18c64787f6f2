#include "verify/programs/random_forward.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ferry::verify {

CodeId RandomForward::make() {
  const CodeId id = b_.code(CodeKind::kSegment, "forward");
  const Slot input = draft_.input;
  const Slot first = draft_.first;
  const Slot x0 = b_.slot(id);
  if (recipe_.embeds) {
    const CodeId body = draft_.make_body(draft_.sized(1), {draft_.sized(1)}, 1);
    b_.add(id, MakeNode{"EmbedBackward", b_.node_id(), {first}, {x0}, {input}, body});
  }
  Op embed{"embed", {input, first}, {x0}, {draft_.sized(1)}, {}, 0, 4096, 2048, 0};
  embed.random = true;  // so that each forward has other values
  b_.add(id, std::move(embed));
  Region region{.id = id};
  const Activation x = make_layers(region, {x0, draft_.sized(1), recipe_.embeds});
  const Slot loss = b_.slot(id);
  const CodeId body = draft_.make_body(draft_.scalar, {x.type}, 1, false, x.type);
  b_.add(id, MakeNode{"LossBackward", b_.node_id(), {x.slot}, {loss}, {x.slot}, body});
  b_.add(id, Op{"loss", {x.slot}, {loss}, {draft_.scalar}, {}, 0, 4096, 4, 0});
  b_.result(id, loss);
  return id;
}

// Makes layers until the segment of the region ends.
Activation RandomForward::make_layers(Region& region, Activation x) {
  while (at_ < recipe_.layers.size()) {
    const Layer& layer = recipe_.layers[at_];
    const Activation before = x;
    if (recipe_.segments && opened_ < layer.opens && region.depth < kSegmentDepth) {
      ++opened_;
      const std::size_t held = region.held.size();
      x = make_segment(region, layer, x);
      const Activation& last = region.held.size() > held ? region.held.back() : x;
      if (region.depth == 0) write_around(region.id, {before, x, last});
      finish(region, before, x, false);
    } else {
      x = make_whole_layer(region, layer, x);
      finish(region, before, x, layer.hold);
      ++at_;
      opened_ = 0;
      closing_ = recipe_.segments ? layer.closes : 0;
    }
    if (closing_ > 0 && region.depth > 0) {
      --closing_;
      break;
    }
  }
  return x;
}

void RandomForward::finish(Region& region, const Activation& before, const Activation& x,
                           bool hold) {
  if (before.slot == region.borrowed || before.slot == x.slot) return;
  if (hold) {
    region.held.push_back(before);
  } else {
    b_.add(region.id, Free{{before.slot}});
  }
}

// Makes a layer and what belongs before and after it.
Activation RandomForward::make_whole_layer(Region& region, const Layer& layer, Activation x) {
  const auto extra = recipe_.segments ? layer.extra : Extra::kNothing;
  const CodeId id = region.id;
  const Slot w = draft_.weights[at_];
  const int failing = recipe_.failing_layer % static_cast<int>(recipe_.layers.size());
  const bool fails = static_cast<int>(at_) == failing;
  if (failure_ == StepFailure::kForwardRaises && fails) b_.add(id, Raise{"forward fails"});
  if (fails_again(failure_) && fails && region.depth > 0) fail_again(id, x);
  if (extra == Extra::kAmbient) {
    b_.add(id, Ambient{1 + static_cast<std::uint32_t>(at_) % 3});
  }
  const Activation before = x;
  x = layers_.make(region, layer, w, x, failure_ == StepFailure::kBackwardRaises && fails);
  x.graph = before.graph || (layer.kind != LayerKind::kEscape && takes_gradients(region, layer));
  if (extra == Extra::kDropout) x = layers_.dropout(region, x);
  // A backward inside forward recomputes only what was saved so far, so it may not reach the
  // failure.
  const bool differentiates = extra >= Extra::kInnerBackward && x.graph;
  if (differentiates && !region.reentrant && !fails_again(failure_)) {
    x = layers_.inner_backward(region, extra, layer, w, x);
  }
  // A tensor that is recomputed must not be written here: there might be no error.
  if (failure_ == StepFailure::kSavedWritten && fails && region.depth == 0 &&
      (writes_ == LateWrites::kOfAny || before.slot != from_segment_)) {
    b_.write(id, "late_", before.slot);
  }
  return x;
}

// Returns true if the layer's output has a graph even if its input has none.
bool RandomForward::takes_gradients(const Region& region, const Layer& layer) const {
  return !layer.frozen || (layer.skip && !region.held.empty() && region.held.back().graph);
}

// Writes the input or one of the results of a segment that contains, or comes after, the failing
// layer.
void RandomForward::write_around(CodeId id, const std::array<Activation, 3>& around) {
  const auto failing = static_cast<std::size_t>(recipe_.failing_layer) % recipe_.layers.size();
  if (failure_ != StepFailure::kSavedWritten || writes_ != LateWrites::kOfAny) return;
  if (failing >= at_) return;
  const Layer& layer = recipe_.layers[failing];
  b_.write(id, "late_", around[layer.skip ? 2 : layer.hold ? 0 : 1].slot);
}

// Makes a segment of the next layers. Its results are x and, unless it is reentrant, the last
// activation that it holds.
Activation RandomForward::make_segment(Region& outer, const Layer& layer, const Activation& x) {
  // A reentrant segment whose input has no graph makes no output with a graph.
  const bool reentrant = is_reentrant(layer.segment) && recipe_.derivatives == 1 && x.graph &&
                         !fails_again(failure_);  // a reentrant one rejects a backward with inputs
  const bool own_stream = (layer.segment & kOwnStream) != 0;
  const std::uint32_t stream = outer.stream + (own_stream ? 1 : 0);
  Region inner{.id = b_.code(CodeKind::kSegment, "segment"),
               .depth = outer.depth + 1,
               .stream = stream,
               .reentrant = reentrant || outer.reentrant};
  std::vector<Slot> in = {x.slot};
  const Activation argument{b_.argument(inner.id), x.type, x.graph};
  if (reentrant) {
    inner.borrowed = argument.slot;
  } else if (!outer.held.empty()) {
    in.push_back(outer.held.back().slot);
    const Activation& held = outer.held.back();
    inner.held.push_back({b_.argument(inner.id), held.type, held.graph});
  }
  const std::size_t given = inner.held.size();
  const Activation y = make_layers(inner, argument);
  b_.result(inner.id, y.slot);
  std::vector<Slot> out = {b_.slot(outer.id)};
  if (!reentrant && inner.held.size() > given) {
    b_.result(inner.id, inner.held.back().slot);
    out.push_back(b_.slot(outer.id));
    outer.held.push_back({out.back(), inner.held.back().type, inner.held.back().graph});
  }
  if (own_stream) draft_.begin_stream(outer.id, in, outer.stream);
  Call call{inner.id, in, out};
  set_recompute(call, layer, reentrant, inner.random);
  b_.add(outer.id, call);
  if (own_stream) draft_.end_stream(outer.id, out, outer.stream);
  outer.random |= inner.random;
  from_segment_ = out[0];
  return {out[0], y.type, y.graph};
}

void RandomForward::set_recompute(Call& call, const Layer& layer, bool reentrant,
                                  bool random) const {
  // If a recompute is meant to fail, there are no spans: a checkpoint around a span does not always
  // notice that a recompute in the span saves more than forward did.
  if ((layer.segment & kSpanBit) != 0 && !fails_again(failure_)) {
    call.recompute = Recompute::kReplay;
    return;
  }
  call.recompute = reentrant ? Recompute::kReentrant : Recompute::kCheckpoint;
  // A recompute within forward that does not stop early would fail before forward does, and then
  // forward would draw fewer random numbers.
  call.early_stop =
      reentrant || failure_ != StepFailure::kNone || (layer.segment & kNoEarlyStop) == 0;
  call.preserve_rng = random || (layer.segment & kNoRandomState) == 0;
  call.determinism_check =
      reentrant || failure_ == StepFailure::kRecomputeSavesMore || (layer.segment & kNoCheck) == 0;
}

// Adds code that fails only in a recompute. It raises, or it saves a tensor of a size that no other
// tensor has, so often that it takes the places of all later saves.
void RandomForward::fail_again(CodeId id, const Activation& x) {
  if (failure_ == StepFailure::kRecomputeRaises) {
    b_.add(id, When{true, 1});
    b_.add(id, Raise{std::string(kRecomputeFails)});
    return;
  }
  constexpr std::int64_t kOddSize = 333;
  constexpr std::size_t kSaves = 64;
  const TypeId odd = b_.type({kOddSize});
  const Slot y = b_.slot(id);
  const CodeId body = draft_.make_body(odd, {x.type}, kSaves, false, odd);
  const std::uint32_t node = b_.node_id();
  b_.add(id, When{true, 4});
  b_.add(id, MakeNode{"MoreBackward", node, {x.slot}, {y}, {}, body});
  b_.add(id, Op{"more", {x.slot}, {y}, {odd}, {}, 0, 0, 0, 0});
  b_.add(id, Save{node, std::vector<Slot>(kSaves, y)});
  b_.add(id, Free{{y}});
}

}  // namespace ferry::verify
