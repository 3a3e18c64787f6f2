#include "sim/verify/programs/random_program.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "formats/builder.h"

namespace ferry::verify {
namespace {

class RandomProgram {
 public:
  explicit RandomProgram(const Recipe& recipe) : recipe_(recipe), orders_(orders_of(recipe)) {
    scalar_ = b_.type({1}, DType::kF32);
    input_ = b_.global(GlobalKind::kInput, b_.type({kSizes[1]}, DType::kI64));
    first_ = b_.global(GlobalKind::kParameter, sized(1));
    for (const Layer& layer : recipe.layers) {
      weights_.push_back(b_.global(GlobalKind::kParameter, sized(layer.size)));
    }
    inner_ = make_inner();
    const CodeId forward = make_forward(0);
    if (recipe.failure != 0) {
      backward(call(make_forward(recipe.failure), recipe.whole && recipe.failure != 3));
    }
    // What failed may have left work on any stream.
    const std::uint32_t streams = recipe.segments && recipe.failure != 0 ? kSegmentDepth + 1 : 0;
    for (std::uint32_t from = 1; from <= streams; ++from) b_.add(0, Sync{from, 0});
    if (recipe.move && !weights_.empty()) b_.add(0, Move{weights_.front()});
    make_main(forward);
  }
  Program take() { return std::move(b_.program); }

 private:
  TypeId sized(int size) { return b_.type({kSizes[static_cast<std::size_t>(size)]}); }

  // How often what a forward does is differentiated: in forward, too, where that makes a graph.
  static int orders_of(const Recipe& recipe) {
    const bool creates = std::any_of(
        recipe.layers.begin(), recipe.layers.end(),
        [](const Layer& layer) { return layer.extra == static_cast<int>(Extra::kInnerCreates); });
    return recipe.derivatives + (recipe.segments && creates ? 1 : 0);
  }

  // A body for a node with this output, these inputs and saves: its results are ops on everything
  // it has. The type of the first saved tensor is given where it is one that has a graph.
  CodeId make_body(TypeId out, const std::vector<TypeId>& in, std::size_t saves, bool fails = false,
                   std::optional<TypeId> first_saved = {}) {
    std::vector<std::optional<TypeId>> saved(saves);
    if (first_saved) saved.front() = first_saved;
    return make_body_of_order(1, {out}, saved, in, fails);
  }

  // `in`: of its results. As long as that may be differentiated once more, it makes a node, which
  // saves all that the results are made of, and leads to what of that has a type here.
  CodeId make_body_of_order(int order, const std::vector<TypeId>& gradients,
                            std::vector<std::optional<TypeId>> saved, const std::vector<TypeId>& in,
                            bool fails) {
    const CodeId id = b_.code(CodeKind::kBody, "Backward" + std::to_string(order));
    std::vector<Slot> have;
    for (std::size_t i = 0; i < gradients.size(); ++i) have.push_back(b_.argument(id));
    for (std::size_t i = 0; i < saved.size(); ++i) have.push_back(b_.saved(id));
    if (fails) b_.add(id, Raise{"backward fails"});
    std::vector<Slot> results;
    for (std::size_t i = 0; i < in.size(); ++i) results.push_back(b_.slot(id));
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
      b_.add(id, MakeNode{"BackwardBackward", b_.node_id(), from, results, have, next});
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
      Op op{gradient_op(order, i), have, {results[i]}, {in[i]}, {}, 0, 0, 0, 0};
      b_.add(id, std::move(op));
      b_.result(id, results[i]);
    }
    return id;
  }

  // The region that a nested backward differentiates: y = f(a, w).
  CodeId make_inner() {
    const CodeId id = b_.code(CodeKind::kSegment, "inner");
    const Slot a = b_.argument(id);
    const Slot y = b_.slot(id);
    const CodeId body = make_body(scalar_, {sized(1)}, 2);
    b_.add(id, MakeNode{"InnerBackward", b_.node_id(), {first_}, {y}, {a, first_}, body});
    b_.add(id, Op{"inner", {a, first_}, {y}, {scalar_}, {}, 0, 0, 0, 0});
    b_.result(id, y);
    return id;
  }

  struct Activation {
    Slot slot;
    TypeId type;
  };

  // A code that layers are put in: the forward, or a segment.
  struct Region {
    CodeId id = 0;
    int depth = 0;  // segments around it
    std::uint32_t stream = 0;
    bool reentrant = false;  // it, or a segment around it
    std::vector<Activation> held = {};
    std::optional<Slot> borrowed = {};  // an input that is not to be freed or held
    bool random = false;                // it draws random numbers
  };

  // failure: 1, the forward raises in the failing layer; 2, that layer's backward does; 3, what it
  // saved is written later.
  CodeId make_forward(int failure) {
    const CodeId id = b_.code(CodeKind::kSegment, "forward");
    const Slot x0 = b_.slot(id);
    if (recipe_.embeds) {
      const CodeId body = make_body(sized(1), {sized(1)}, 1);
      b_.add(id, MakeNode{"EmbedBackward", b_.node_id(), {first_}, {x0}, {input_}, body});
    }
    Op embed{"embed", {input_, first_}, {x0}, {sized(1)}, {}, 0, 4096, 2048, 0};
    embed.random = true;  // so that no two forwards have the same values
    b_.add(id, std::move(embed));
    failure_ = failure;
    opened_ = closing_ = 0;
    at_ = 0;
    from_segment_.reset();
    Region region{.id = id};
    const Activation x = make_layers(region, {x0, sized(1)});
    const Slot loss = b_.slot(id);
    const CodeId body = make_body(scalar_, {x.type}, 1, false, x.type);
    b_.add(id, MakeNode{"LossBackward", b_.node_id(), {x.slot}, {loss}, {x.slot}, body});
    b_.add(id, Op{"loss", {x.slot}, {loss}, {scalar_}, {}, 0, 4096, 4, 0});
    b_.result(id, loss);
    return id;
  }

  // From the next layer on, until the region's segment closes.
  Activation make_layers(Region& region, Activation x) {
    while (at_ < recipe_.layers.size()) {
      const Layer& layer = recipe_.layers[at_];
      const Activation before = x;
      if (recipe_.segments && opened_ < layer.opens && region.depth < kSegmentDepth) {
        ++opened_;
        x = make_segment(region, layer, x);
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

  void finish(Region& region, const Activation& before, const Activation& x, bool hold) {
    if (before.slot == region.borrowed || before.slot == x.slot) return;
    if (hold) {
      region.held.push_back(before);
    } else {
      b_.add(region.id, Free{{before.slot}});
    }
  }

  Activation make_whole_layer(Region& region, const Layer& layer, Activation x) {
    const auto extra = recipe_.segments ? static_cast<Extra>(layer.extra) : Extra::kNothing;
    const CodeId id = region.id;
    const int failing = recipe_.failing_layer % static_cast<int>(recipe_.layers.size());
    const bool fails = static_cast<int>(at_) == failing;
    if (failure_ == 1 && fails) b_.add(id, Raise{"forward fails"});
    if (extra == Extra::kAmbient) {
      b_.add(id, Ambient{1 + static_cast<std::uint32_t>(at_) % 3});
    }
    const Activation before = x;
    x = make_layer(region, layer, weights_[at_], x, failure_ == 2 && fails);
    if (extra == Extra::kDropout) x = dropout(region, x);
    if (extra >= Extra::kInnerBackward && !region.reentrant) {
      x = inner_backward(region, extra, static_cast<LayerKind>(layer.kind), weights_[at_], x);
    }
    // (Not where what is written was recomputed: there may be no error.)
    if (failure_ == 3 && fails && region.depth == 0 && before.slot != from_segment_) {
      b_.write(id, "late_", before.slot);
    }
    return x;
  }

  // The next layers as a code of their own. Its results are x and, but for the reentrant variant,
  // the last activation that it holds.
  Activation make_segment(Region& outer, const Layer& layer, const Activation& x) {
    const bool reentrant =
        (layer.segment & kReentrantBit) != 0 && recipe_.derivatives == 1 && recipe_.embeds;
    const bool own_stream = (layer.segment & kOwnStream) != 0;
    const std::uint32_t stream = outer.stream + (own_stream ? 1 : 0);
    Region inner{.id = b_.code(CodeKind::kSegment, "segment"),
                 .depth = outer.depth + 1,
                 .stream = stream,
                 .reentrant = reentrant || outer.reentrant};
    std::vector<Slot> in = {x.slot};
    const Activation argument{b_.argument(inner.id), x.type};
    if (reentrant) {
      inner.borrowed = argument.slot;
    } else if (!outer.held.empty()) {
      in.push_back(outer.held.back().slot);
      inner.held.push_back({b_.argument(inner.id), outer.held.back().type});
    }
    const std::size_t given = inner.held.size();
    const Activation y = make_layers(inner, argument);
    b_.result(inner.id, y.slot);
    std::vector<Slot> out = {b_.slot(outer.id)};
    if (!reentrant && inner.held.size() > given) {
      b_.result(inner.id, inner.held.back().slot);
      out.push_back(b_.slot(outer.id));
      outer.held.push_back({out.back(), inner.held.back().type});
    }
    if (own_stream) begin_stream(outer.id, in, outer.stream);
    Call call{inner.id, in, out};
    call.recompute = reentrant ? Recompute::kReentrant : Recompute::kCheckpoint;
    // (A recompute within forward that does not stop early would fail before forward does, and so
    // draw fewer random numbers.)
    call.early_stop = reentrant || failure_ != 0 || (layer.segment & kNoEarlyStop) == 0;
    call.preserve_rng = inner.random || (layer.segment & kNoRandomState) == 0;
    call.determinism_check = reentrant || (layer.segment & kNoCheck) == 0;
    b_.add(outer.id, call);
    if (own_stream) end_stream(outer.id, out, outer.stream);
    outer.random |= inner.random;
    from_segment_ = out[0];
    return {out[0], y.type};
  }

  // What follows runs on the stream next to `from`.
  void begin_stream(CodeId id, const std::vector<Slot>& in, std::uint32_t from) {
    b_.add(id, Sync{from, from + 1});
    b_.add(id, SetStream{from + 1});
    for (const Slot slot : in) b_.add(id, RecordUse{slot, from + 1});
  }
  void end_stream(CodeId id, const std::vector<Slot>& out, std::uint32_t from) {
    b_.add(id, SetStream{from});
    for (const Slot slot : out) b_.add(id, RecordUse{slot, from});
    b_.add(id, Sync{from + 1, from});
  }

  // A node of the stream next to the region's, where this is called, saves what the region's stream
  // computes afterwards.
  Activation saved_late(const Region& region, const Activation& y) {
    const CodeId id = region.id;
    const Slot z = b_.slot(id);
    const CodeId body = make_body(y.type, {y.type}, 1);
    const std::uint32_t node = b_.node_id();
    b_.add(id, MakeNode{"LateBackward", node, {y.slot}, {z}, {}, body});
    b_.add(id, Op{"side", {y.slot}, {z}, {y.type}, {}, 0, 4096, 4096, 0});
    end_stream(id, {y.slot, z}, region.stream);
    const Slot late = b_.op(id, "late", {z}, y.type);
    b_.add(id, RecordUse{late, region.stream + 1});
    b_.add(id, Save{node, {late}});
    b_.add(id, Free{{late, y.slot}});
    return {z, y.type};
  }

  Activation dropout(Region& region, const Activation& x) {
    region.random = true;
    const CodeId id = region.id;
    Op draw{"draw", {x.slot}, {b_.slot(id)}, {x.type}, {}, 0, 4096, 4096, 0};
    draw.random = true;
    const Slot mask = draw.out[0];
    b_.add(id, std::move(draw));
    const Slot y = b_.slot(id);
    const CodeId body = make_body(x.type, {x.type}, 1);
    b_.add(id, MakeNode{"DropoutBackward", b_.node_id(), {x.slot}, {y}, {mask}, body});
    b_.add(id, Op{"dropout", {x.slot, mask}, {y}, {x.type}, {}, 0, 4096, 4096, 0});
    b_.add(id, Free{{mask, x.slot}});
    return {y, x.type};
  }

  // z = h(y, g), where g is a gradient of a function of y: that of y itself, or of the weight of
  // the layer that made y.
  Activation inner_backward(Region& region, Extra extra, LayerKind kind, Slot w,
                            const Activation& y) {
    const CodeId id = region.id;
    const bool through = extra != Extra::kInnerBackward && kind != LayerKind::kEscape;
    const bool creates = extra == Extra::kInnerCreates;
    const Slot s = b_.slot(id);
    const CodeId body = make_body(scalar_, {y.type}, 2, false, y.type);
    b_.add(id, MakeNode{"InnerBackward", b_.node_id(), {y.slot}, {s}, {y.slot, first_}, body});
    b_.add(id, Op{"inner", {y.slot, first_}, {s}, {scalar_}, {}, 0, 0, 0, 0});
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
    const CodeId mixed = make_body(y.type, types, 2, false, type);
    b_.add(id, MakeNode{"MixBackward", b_.node_id(), in, {z}, {g, y.slot}, mixed});
    b_.add(id, Op{"mix", {y.slot, g}, {z}, {y.type}, {}, 0, 4096, 4096, 0});
    b_.add(id, Free{{g, y.slot}});
    return {z, y.type};
  }

  Activation make_layer(const Region& region, const Layer& layer, Slot w, const Activation& x,
                        bool fails) {
    const CodeId id = region.id;
    const std::vector<Activation>& held = region.held;
    const TypeId out = sized(layer.size);
    std::vector<Slot> in = {x.slot, w};
    std::vector<TypeId> types = {x.type, out};  // the weight has the output's size
    std::vector<Slot> saved = {x.slot, w};
    if (layer.skip && !held.empty()) {
      in.push_back(held.back().slot);
      types.push_back(held.back().type);
      saved.push_back(held.back().slot);
    }
    switch (static_cast<LayerKind>(layer.kind)) {
      case LayerKind::kLinear:
        break;
      case LayerKind::kSavesOutput:
        return linear(id, in, types, saved, out, fails, true);
      case LayerKind::kSavesView:
        saved[0] = b_.view(id, x.slot, window_of(x.type));
        break;
      case LayerKind::kSavesTwice:
        saved.push_back(x.slot);
        break;
      case LayerKind::kInPlace:
        return in_place(id, in, types, out, fails);
      case LayerKind::kDeadBranch: {
        const Activation dead = linear(id, in, types, saved, out, false, true);
        b_.add(id, Free{{dead.slot}});
        break;
      }
      case LayerKind::kEscape:
        return escape(id, x);
      case LayerKind::kSmallView: {
        // Two parts of a large storage, which nothing else keeps.
        const Slot base = b_.op(id, "large", {x.slot}, b_.type({kSizes[3]}));
        for (const int part : {layer.size, 9}) {
          Layout window = contiguous_layout(DType::kBF16, {100'000});
          window.offset = 100'000 * part;
          saved.push_back(b_.view(id, base, b_.layout(window)));
        }
        const Activation y = linear(id, in, types, saved, out, fails, false);
        b_.add(id, Free{{base, saved[saved.size() - 2], saved.back()}});
        return y;
      }
      case LayerKind::kExcluded: {
        b_.add(id, Exclude{true});
        const Activation y = linear(id, in, types, saved, out, fails, false);
        b_.add(id, Exclude{false});
        return y;
      }
      case LayerKind::kSideStream: {
        begin_stream(id, in, region.stream);
        const Activation y = linear(id, in, types, saved, out, fails, true);
        if (recipe_.segments && (layer.segment & kNoCheck) != 0) return saved_late(region, y);
        b_.add(id, SetStream{region.stream});
        const Slot meanwhile = b_.op(id, "meanwhile", {w}, out);
        b_.add(id, Free{{meanwhile}});
        end_stream(id, {y.slot}, region.stream);
        return y;
      }
      case LayerKind::kNested:
        return nested(id, in, types, saved, out, fails, recipe_.segments && layer.segment % 2 != 0);
      case LayerKind::kWrittenBetween: {
        // Legal: the first save is never unpacked, and the second one is of the new version.
        const Slot own = b_.op(id, "own", {x.slot}, x.type);
        linear(id, {own, w}, {x.type, out}, {own}, out, false, false);
        b_.write(id, "relu_", own);
        saved.push_back(own);
        const Activation y = linear(id, in, types, saved, out, fails, false);
        b_.add(id, Free{{own}});
        return y;
      }
    }
    return linear(id, in, types, saved, out, fails, false);
  }

  Activation linear(CodeId id, const std::vector<Slot>& in, const std::vector<TypeId>& types,
                    const std::vector<Slot>& saved, TypeId out, bool fails, bool saves_output) {
    const Slot y = b_.slot(id);
    const std::size_t saves = saved.size() + (saves_output ? 1 : 0);
    // (saved.front() has the first input's size, or is the weight, which has the output's.)
    const TypeId first_saved = saved.size() == 1 ? out : types.front();
    const CodeId body = make_body(out, types, saves, fails, first_saved);
    const std::uint32_t node = b_.node_id();
    b_.add(id, MakeNode{"LinearBackward", node, in, {y}, saved, body});
    const std::int64_t bytes = storage_bytes(b_.program.types[out]);
    b_.add(id, Op{"linear", in, {y}, {out}, {}, 0, 2 * bytes, bytes, 0});
    if (saves_output) b_.add(id, Save{node, {y}});
    return {y, out};
  }

  Activation in_place(CodeId id, const std::vector<Slot>& in, const std::vector<TypeId>& types,
                      TypeId out, bool fails) {
    const Activation y = linear(id, in, types, {in[1]}, out, fails, false);
    b_.write(id, "relu_", y.slot);
    const Slot z = b_.slot(id);
    const CodeId body = make_body(out, {out}, 1, false, out);
    const std::uint32_t node = b_.node_id();
    b_.add(id, MakeNode{"ReluBackward", node, {y.slot}, {z}, {}, body});
    b_.add(id, View{z, y.slot, out});
    b_.add(id, Save{node, {z}});
    b_.add(id, Free{{y.slot}});
    return {z, out};
  }

  // y = x * mask, whose backward hands out a view of the mask as the gradient.
  Activation escape(CodeId id, const Activation& x) {
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

  // The backward runs a region of its own and differentiates it.
  Activation nested(CodeId id, const std::vector<Slot>& in, const std::vector<TypeId>& types,
                    const std::vector<Slot>& saved, TypeId out, bool fails, bool recomputes) {
    const CodeId body = b_.code(CodeKind::kBody, "NestedBackward");
    std::vector<Slot> have = {b_.argument(body)};
    for (std::size_t i = 0; i < saved.size(); ++i) have.push_back(b_.saved(body));
    const Slot y1 = b_.slot(body);
    const Slot inner_gradient = b_.slot(body);
    Call call{inner_, {have[1]}, {y1}};
    if (recomputes) call.recompute = Recompute::kCheckpoint;
    b_.add(body, call);
    b_.add(body, Backward{{y1}, {first_}, {inner_gradient}, false, false});
    have.push_back(inner_gradient);
    if (fails) b_.add(body, Raise{"backward fails"});
    for (const TypeId type : types) b_.result(body, b_.op(body, "nested", have, type));
    const Slot y = b_.slot(id);
    b_.add(id, MakeNode{"NestedBackward", b_.node_id(), in, {y}, saved, body});
    b_.add(id, Op{"linear", in, {y}, {out}, {}, 0, 4096, 4096, 0});
    return {y, out};
  }

  // A strided window on the second half.
  TypeId window_of(TypeId type) {
    const std::int64_t elements = b_.program.types[type].shape[0];
    return b_.layout({DType::kBF16, {elements / 4}, {2}, elements / 2});
  }

  Slot call(CodeId forward) { return call(forward, recipe_.whole); }
  Slot call(CodeId called, bool whole, std::vector<Slot> in = {}) {
    const Slot result = b_.slot(0);
    Call call{called, std::move(in), {result}};
    if (recipe_.segments && whole) call.recompute = Recompute::kCheckpoint;
    b_.add(0, call);
    return result;
  }
  void backward(Slot loss) {
    if (recipe_.retain) b_.add(0, Backward{{loss}, {}, {}, true, false});
    b_.add(0, Backward{{loss}, {}, {}, false, false});
    b_.add(0, Free{{loss}});
  }

  void make_main(CodeId forward) {
    const int count = recipe_.microbatches;
    std::vector<Slot> losses;
    const int ahead = recipe_.order == 0 ? 1 : recipe_.order == 1 ? count : std::min(2, count);
    for (int i = 0; i < ahead; ++i) losses.push_back(call(forward));
    for (int started = ahead; !losses.empty();) {
      const bool last_first = recipe_.order == 1;
      const Slot loss = last_first ? losses.back() : losses.front();
      losses.erase(last_first ? losses.end() - 1 : losses.begin());
      backward(loss);
      if (started < count) {
        losses.push_back(call(forward));
        ++started;
      }
    }
    if (recipe_.derivatives > 1 && !weights_.empty()) derive(forward);
  }

  // The gradient of a function of a gradient of a function of ...
  void derive(CodeId forward) {
    const Slot w = weights_[static_cast<std::size_t>(recipe_.differentiated) % weights_.size()];
    const TypeId type = b_.program.globals[w].type;
    const CodeId norm = make_norm(type);
    Slot value = call(forward);
    for (int order = 1; order < recipe_.derivatives; ++order) {
      const Slot gradient = b_.slot(0);
      b_.add(0, Backward{{value}, {w}, {gradient}, false, true});
      value = call(norm, recipe_.whole, {gradient});
    }
    b_.add(0, Backward{{value}, {}, {}, false, false});
  }

  CodeId make_norm(TypeId type) {
    const CodeId id = b_.code(CodeKind::kSegment, "norm");
    const Slot x = b_.argument(id);
    const Slot norm = b_.slot(id);
    const CodeId body = make_body(scalar_, {type}, 1, false, type);
    b_.add(id, MakeNode{"NormBackward", b_.node_id(), {x}, {norm}, {x}, body});
    b_.add(id, Op{"norm", {x}, {norm}, {scalar_}, {}, 0, 4096, 4, 0});
    b_.result(id, norm);
    return id;
  }

  const Recipe& recipe_;
  const int orders_;
  Builder b_;
  TypeId scalar_ = 0;
  Slot input_ = 0;
  Slot first_ = 0;
  std::vector<Slot> weights_;
  CodeId inner_ = 0;
  // Of the forward that is being made.
  int failure_ = 0;
  std::size_t at_ = 0;                // the next layer
  int opened_ = 0;                    // of its segments
  int closing_ = 0;                   // segments that end here still
  std::optional<Slot> from_segment_;  // the latest result of one
};

}  // namespace

Program make_program(const Recipe& recipe) { return RandomProgram(recipe).take(); }

Program without_segments(Program program) {
  for (Code& code : program.codes) {
    for (Statement& statement : code.statements) {
      if (auto* call = std::get_if<Call>(&statement.action)) call->recompute = Recompute::kNone;
    }
  }
  return program;
}

std::string gradient_op(int order, std::size_t i) {
  std::string text = "grad";
  text.append(std::to_string(order)).append(".").append(std::to_string(i));
  return text;
}

}  // namespace ferry::verify
