// The layers of a random forward: what each LayerKind reads, saves and computes, and the Extra that
// may follow it.
//
// Each function takes an activation and makes the next one from it, in a region. The caller frees
// the input. A function for an Extra frees its input itself.
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
  bool graph = true;  // it has a graph of autograd
};

// A code that layers are added to: the forward or a segment.
struct Region {
  CodeId id = 0;
  int depth = 0;  // number of segments around it
  std::uint32_t stream = 0;
  bool reentrant = false;  // the region, or a segment around it, is reentrant
  std::vector<Activation> held = {};
  std::optional<Slot> borrowed = {};  // an input that must not be freed or held
  bool random = false;                // it draws random numbers
};

class RandomLayers {
 public:
  // The draft must outlive this object.
  explicit RandomLayers(Draft& draft) : draft_(draft), b_(draft.b), recipe_(draft.recipe) {}

  // `w` is the layer's weight, which has the size of its output. `fails`: the layer's backward
  // raises.
  Activation make(const Region& region, const Layer& layer, Slot w, const Activation& x,
                  bool fails);

  Activation dropout(Region& region, const Activation& x);
  // Runs a backward inside the forward, and returns z = h(y, g). g is the gradient of a function of
  // y, with respect to y or to the weight of the layer that made y. Backward of z goes to y, and to
  // g only with kInnerCreates.
  Activation inner_backward(const Region& region, Extra extra, const Layer& layer, Slot w,
                            const Activation& y);

 private:
  // The parts of a layer's node: its inputs, the tensors that it saves, and the type of its
  // output.
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
