// The layers of a random forward: what each kind of layer (LayerKind) reads, saves and computes,
// and what may come after it (Extra).
//
// Each gets an activation and makes the next one of it, in the region where it is put. Freeing what
// it got is the caller's, but for what comes after a layer, which frees the layer's output.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/builder.h"
#include "verify/programs/draft.h"
#include "verify/programs/recipe.h"

namespace ferry::verify {

struct Activation {
  Slot slot = 0;
  TypeId type = 0;
  bool graph = true;  // it has one
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

class RandomLayers {
 public:
  // The draft outlives them.
  explicit RandomLayers(Draft& draft) : draft_(draft), b_(draft.b), recipe_(draft.recipe) {}

  // `w`: its weight. It has the output's size. `fails`: its backward does.
  Activation make(const Region& region, const Layer& layer, Slot w, const Activation& x,
                  bool fails);

  Activation dropout(Region& region, const Activation& x);
  // z = h(y, g), where g is a gradient of a function of y: that of y itself, or of the weight of
  // the layer that made y. It has a graph.
  Activation inner_backward(const Region& region, Extra extra, const Layer& layer, Slot w,
                            const Activation& y);

 private:
  // The parts that a layer's node is made of: what it leads to, what it saves, what it returns.
  struct Parts {
    std::vector<Slot> in = {};
    std::vector<TypeId> types = {};  // of `in`
    std::vector<Slot> saved = {};
    TypeId out = 0;
    bool fails = false;
  };

  Activation linear(CodeId id, const Parts& parts, bool saves_output);
  Activation in_place(CodeId id, Parts parts);
  void dead_branch(CodeId id, Parts parts);
  Activation escape(CodeId id, const Activation& x);
  Activation small_view(CodeId id, Parts parts, const Activation& x, int size);
  Activation excluded(CodeId id, const Parts& parts);
  Activation side_stream(const Region& region, const Parts& parts, Slot w, bool late);
  Activation saved_late(const Region& region, const Activation& y);
  Activation nested(CodeId id, const Parts& parts, bool recomputes);
  Activation written_between(CodeId id, Parts parts, const Activation& x, Slot w);
  TypeId window_of(TypeId type);

  Draft& draft_;
  Builder& b_;
  const Recipe& recipe_;
};

}  // namespace ferry::verify
