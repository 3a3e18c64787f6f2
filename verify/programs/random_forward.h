// Makes the forward of a random program: its layers in order, from the embedding to the loss, and
// the nested segments that they lie in.
//
// The recipe says how many segments begin and end at each layer. RandomForward makes one code for
// each segment, so the codes form a tree. An activation is freed by the code that makes the next
// one from it, or is held to the end.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "formats/builder.h"
#include "verify/programs/draft.h"
#include "verify/programs/random_layers.h"
#include "verify/programs/random_program.h"
#include "verify/programs/recipe.h"

namespace ferry::verify {

class RandomForward {
 public:
  // `failure` happens in the recipe's failing layer. The draft must outlive this object.
  RandomForward(Draft& draft, StepFailure failure, LateWrites writes)
      : draft_(draft),
        b_(draft.b),
        recipe_(draft.recipe),
        layers_(draft),
        failure_(failure),
        writes_(writes) {}

  // May be called once.
  CodeId make();

 private:
  Activation make_layers(Region& region, Activation x);
  void finish(Region& region, const Activation& before, const Activation& x, bool hold);
  Activation make_whole_layer(Region& region, const Layer& layer, Activation x);
  bool takes_gradients(const Region& region, const Layer& layer) const;
  Activation make_segment(Region& outer, const Layer& layer, const Activation& x);
  void fail_again(CodeId id, const Activation& x);
  void write_around(CodeId id, const std::array<Activation, 3>& around);
  // `random`: the segment draws random numbers.
  void set_recompute(Call& call, const Layer& layer, bool reentrant, bool random) const;

  Draft& draft_;
  Builder& b_;
  const Recipe& recipe_;
  RandomLayers layers_;
  const StepFailure failure_;
  const LateWrites writes_;
  std::size_t at_ = 0;                // index of the next layer
  int opened_ = 0;                    // how many segments of that layer have begun
  int closing_ = 0;                   // how many segments end here and are still open
  std::optional<Slot> from_segment_;  // the latest result of a segment
};

}  // namespace ferry::verify
