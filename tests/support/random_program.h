// Random training steps: what a recipe, a few small numbers, makes. Recipes shrink; programs
// follow.
//
// Layers save inputs, outputs, views, one tensor twice, views of large storages; write in place;
// return a view of a saved tensor as a gradient; run on a side stream; are excluded; run a nested
// backward in their backward; have branches that nobody differentiates. Around them: micro-batches
// in three orders, retain_graph, double backward, a forward or a backward that fails, parameters
// that move. Every program is one that PyTorch would run without hooks; check_program accepts it.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/builder.h"

namespace ferry::test {

enum class LayerKind : int {
  kLinear,
  kSavesOutput,
  kSavesView,
  kSavesTwice,
  kInPlace,
  kDeadBranch,
  kEscape,
  kSmallView,
  kExcluded,
  kSideStream,
  kNested,
  kWrittenBetween,
};
inline constexpr int kLayerKinds = static_cast<int>(LayerKind::kWrittenBetween) + 1;
inline constexpr std::array<std::int64_t, 4> kSizes = {256, 1024, 40'000, 1'500'000};

struct Layer {
  int kind = 0;
  int size = 0;       // of its output, an index into kSizes
  bool hold = false;  // its input stays alive until the end of forward
  bool skip = false;  // it reads, and saves, the latest held activation too
};

struct Recipe {
  std::vector<Layer> layers;
  int microbatches = 1;
  int order = 0;  // FBFB, FFBB, 1F1B
  bool retain = false;
  bool twice = false;  // double backward at the end
  int failure = 0;     // of a step before: none, forward, backward, a saved tensor written later
  int failing_layer = 0;
  bool move = false;
};

class RandomProgram {
 public:
  explicit RandomProgram(const Recipe& recipe) : recipe_(recipe) {
    scalar_ = b_.type({1}, DType::kF32);
    input_ = b_.global(GlobalKind::kInput, b_.type({kSizes[1]}, DType::kI64));
    first_ = b_.global(GlobalKind::kParameter, sized(1));
    for (const Layer& layer : recipe.layers) {
      weights_.push_back(b_.global(GlobalKind::kParameter, sized(layer.size)));
    }
    inner_ = make_inner();
    const CodeId forward = make_forward(0);
    if (recipe.failure != 0) backward(call(make_forward(recipe.failure)));
    if (recipe.move && !weights_.empty()) b_.add(0, Move{weights_.front()});
    make_main(forward);
  }
  Program take() { return std::move(b_.program); }

 private:
  TypeId sized(int size) { return b_.type({kSizes[static_cast<std::size_t>(size)]}); }

  // A body whose results are ops on everything it has, for a node with these inputs and saves.
  // With `again`, it makes a node itself, so that it can be differentiated.
  CodeId make_body(TypeId out, const std::vector<TypeId>& in, std::size_t saves, bool again,
                   bool fails = false) {
    const CodeId id = b_.code(CodeKind::kBody, "Backward");
    std::vector<Slot> have = {b_.argument(id)};
    for (std::size_t i = 0; i < saves; ++i) have.push_back(b_.saved(id));
    if (fails) b_.add(id, Raise{"backward fails"});
    std::vector<Slot> results;
    for (std::size_t i = 0; i < in.size(); ++i) results.push_back(b_.slot(id));
    if (again) {
      const CodeId second = make_second_body(out, in, have.size());
      b_.add(id, MakeNode{"DoubleBackward", b_.node_id(), {have[0]}, results, have, second});
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
      Op op{"grad" + std::to_string(i), have, {results[i]}, {in[i]}, {}, 0, 0, 0, 0};
      b_.add(id, std::move(op));
      b_.result(id, results[i]);
    }
    return id;
  }

  // Of the node that a body makes: gradients of its results to the gradient of its argument.
  CodeId make_second_body(TypeId out, const std::vector<TypeId>& in, std::size_t saves) {
    const CodeId id = b_.code(CodeKind::kBody, "DoubleBackward");
    std::vector<Slot> have;
    for (std::size_t i = 0; i < in.size(); ++i) have.push_back(b_.argument(id));
    for (std::size_t i = 0; i < saves; ++i) have.push_back(b_.saved(id));
    b_.result(id, b_.op(id, "grad_grad", have, out));
    return id;
  }

  // The region that a nested backward differentiates: y = f(a, w).
  CodeId make_inner() {
    const CodeId id = b_.code(CodeKind::kSegment, "inner");
    const Slot a = b_.argument(id);
    const Slot y = b_.slot(id);
    const CodeId body = make_body(scalar_, {sized(1)}, 2, false);
    b_.add(id, MakeNode{"InnerBackward", b_.node_id(), {first_}, {y}, {a, first_}, body});
    b_.add(id, Op{"inner", {a, first_}, {y}, {scalar_}, {}, 0, 0, 0, 0});
    b_.result(id, y);
    return id;
  }

  struct Activation {
    Slot slot;
    TypeId type;
  };

  // failure: 1, the forward raises in the failing layer; 2, that layer's backward does.
  CodeId make_forward(int failure) {
    const CodeId id = b_.code(CodeKind::kSegment, "forward");
    const Slot x0 = b_.slot(id);
    const CodeId embed = make_body(sized(1), {sized(1)}, 1, true);
    b_.add(id, MakeNode{"EmbedBackward", b_.node_id(), {first_}, {x0}, {input_}, embed});
    b_.add(id, Op{"embed", {input_, first_}, {x0}, {sized(1)}, {}, 0, 4096, 2048, 0});
    Activation x{x0, sized(1)};
    std::vector<Activation> held;
    const int failing = recipe_.layers.empty()
                            ? 0
                            : recipe_.failing_layer % static_cast<int>(recipe_.layers.size());
    for (std::size_t i = 0; i < recipe_.layers.size(); ++i) {
      const Layer& layer = recipe_.layers[i];
      const bool fails = static_cast<int>(i) == failing;
      if (failure == 1 && fails) b_.add(id, Raise{"forward fails"});
      const Activation before = x;
      x = make_layer(id, layer, weights_[i], x, held, failure == 2 && fails);
      if (failure == 3 && fails) b_.write(id, "late_", before.slot);
      if (layer.hold) {
        held.push_back(before);
      } else if (before.slot != x.slot) {
        b_.add(id, Free{{before.slot}});
      }
    }
    const Slot loss = b_.slot(id);
    const CodeId body = make_body(scalar_, {x.type}, 1, true);
    b_.add(id, MakeNode{"LossBackward", b_.node_id(), {x.slot}, {loss}, {x.slot}, body});
    b_.add(id, Op{"loss", {x.slot}, {loss}, {scalar_}, {}, 0, 4096, 4, 0});
    b_.result(id, loss);
    return id;
  }

  Activation make_layer(CodeId id, const Layer& layer, Slot w, const Activation& x,
                        const std::vector<Activation>& held, bool fails) {
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
        b_.add(id, Sync{0, 1});
        b_.add(id, SetStream{1});
        for (const Slot slot : in) b_.add(id, RecordUse{slot, 1});
        const Activation y = linear(id, in, types, saved, out, fails, true);
        b_.add(id, SetStream{0});
        const Slot meanwhile = b_.op(id, "meanwhile", {w}, out);
        b_.add(id, Free{{meanwhile}});
        b_.add(id, RecordUse{y.slot, 0});
        b_.add(id, Sync{1, 0});
        return y;
      }
      case LayerKind::kNested:
        return nested(id, in, types, saved, out, fails);
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
    const CodeId body = make_body(out, types, saves, true, fails);
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
    const CodeId body = make_body(out, {out}, 1, true);
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
                    const std::vector<Slot>& saved, TypeId out, bool fails) {
    const CodeId body = b_.code(CodeKind::kBody, "NestedBackward");
    std::vector<Slot> have = {b_.argument(body)};
    for (std::size_t i = 0; i < saved.size(); ++i) have.push_back(b_.saved(body));
    const Slot y1 = b_.slot(body);
    const Slot inner_gradient = b_.slot(body);
    b_.add(body, Call{inner_, {have[1]}, {y1}});
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

  Slot call(CodeId forward) {
    const Slot loss = b_.slot(0);
    b_.add(0, Call{forward, {}, {loss}});
    return loss;
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
    if (recipe_.twice && !weights_.empty()) penalty(forward);
  }

  // The gradient of a function of a gradient.
  void penalty(CodeId forward) {
    const Slot w = weights_.back();
    const TypeId type = b_.program.globals[w].type;
    const CodeId segment = b_.code(CodeKind::kSegment, "penalty");
    const Slot g = b_.argument(segment);
    const Slot norm = b_.slot(segment);
    const CodeId body = make_body(scalar_, {type}, 1, false);
    b_.add(segment, MakeNode{"NormBackward", b_.node_id(), {g}, {norm}, {g}, body});
    b_.add(segment, Op{"norm", {g}, {norm}, {scalar_}, {}, 0, 4096, 4, 0});
    b_.result(segment, norm);
    const Slot loss = call(forward);
    const Slot gradient = b_.slot(0);
    const Slot value = b_.slot(0);
    b_.add(0, Backward{{loss}, {w}, {gradient}, false, true});
    b_.add(0, Call{segment, {gradient}, {value}});
    b_.add(0, Backward{{value}, {}, {}, false, false});
  }

  const Recipe& recipe_;
  Builder b_;
  TypeId scalar_ = 0;
  Slot input_ = 0;
  Slot first_ = 0;
  std::vector<Slot> weights_;
  CodeId inner_ = 0;
};

inline Program make_program(const Recipe& recipe) { return RandomProgram(recipe).take(); }

// gen::inRange shrinks its range with the size: a fixed size keeps it whole.
inline rc::Gen<int> in_range(int first, int end) {
  return rc::gen::resize(100, rc::gen::inRange(first, end));
}

inline rc::Gen<Recipe> any_recipe() {
  const auto layer = rc::gen::build<Layer>(rc::gen::set(&Layer::kind, in_range(0, kLayerKinds)),
                                           rc::gen::set(&Layer::size, in_range(0, 4)),
                                           rc::gen::set(&Layer::hold), rc::gen::set(&Layer::skip));
  return rc::gen::build<Recipe>(
      rc::gen::set(&Recipe::layers, rc::gen::mapcat(in_range(1, 11),
                                                    [layer](int count) {
                                                      return rc::gen::container<std::vector<Layer>>(
                                                          static_cast<std::size_t>(count), layer);
                                                    })),
      rc::gen::set(&Recipe::microbatches, in_range(1, 4)),
      rc::gen::set(&Recipe::order, in_range(0, 3)), rc::gen::set(&Recipe::retain),
      rc::gen::set(&Recipe::twice),
      rc::gen::set(&Recipe::failure,
                   rc::gen::map(in_range(0, 10), [](int n) { return n < 4 ? n : 0; })),
      rc::gen::set(&Recipe::failing_layer, in_range(0, 10)), rc::gen::set(&Recipe::move));
}

}  // namespace ferry::test
