// The main code of a random program: the failing step at the beginning, the forwards and backwards
// in their order, and the higher derivatives at the end. random_forward.h makes the forwards.

#include "verify/programs/random_program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "formats/builder.h"
#include "verify/programs/draft.h"
#include "verify/programs/random_forward.h"

namespace ferry::verify {
namespace {

class RandomProgram {
 public:
  RandomProgram(const Recipe& recipe, LateWrites writes)
      : recipe_(recipe), writes_(writes), draft_(recipe), b_(draft_.b), weights_(draft_.weights) {
    const CodeId forward = make_forward(StepFailure::kNone);
    const bool fails = recipe.failure != StepFailure::kNone;
    if (fails) {
      const bool whole = recipe.whole && recipe.failure != StepFailure::kSavedWritten;
      const Slot loss = call(make_forward(recipe.failure), whole);
      fails_again(recipe.failure) ? backward_for_nobody(loss) : backward(loss);
    }
    // A failed step may leave work on any stream.
    const std::uint32_t streams = recipe.segments && fails ? kSegmentDepth + 1 : 0;
    for (std::uint32_t from = 1; from <= streams; ++from) b_.add(0, Sync{from, 0});
    if (recipe.move && !weights_.empty()) b_.add(0, Move{weights_.front()});
    make_main(forward);
  }
  Program take() { return std::move(b_.program); }

 private:
  CodeId make_forward(StepFailure failure) {
    return RandomForward(draft_, failure, writes_).make();
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

  // Gradients of this backward go to no global, so it does not matter if they are computed.
  void backward_for_nobody(Slot loss) {
    b_.add(0, Backward{{loss}, {draft_.first}, {b_.slot(0)}, false, false});
    b_.add(0, Free{{loss}});
  }

  // Returns how many forwards run before the first backward.
  static int forwards_ahead(MicrobatchOrder order, int microbatches) {
    switch (order) {
      case MicrobatchOrder::kFbfb:
        return 1;
      case MicrobatchOrder::kFfbb:
        return microbatches;
      case MicrobatchOrder::kOneForwardOneBackward:
        return std::min(2, microbatches);
    }
    return 1;
  }

  void make_main(CodeId forward) {
    const int count = recipe_.microbatches;
    std::vector<Slot> losses;
    const int ahead = forwards_ahead(recipe_.order, count);
    for (int i = 0; i < ahead; ++i) losses.push_back(call(forward));
    for (int started = ahead; !losses.empty();) {
      const bool last_first = recipe_.order == MicrobatchOrder::kFfbb;
      const Slot loss = last_first ? losses.back() : losses.front();
      losses.erase(last_first ? losses.end() - 1 : losses.begin());
      backward(loss);
      if (started < count) {
        losses.push_back(call(forward));
        ++started;
      }
    }
    const std::optional<Slot> weight = differentiated();
    if (recipe_.derivatives > 1 && weight) derive(forward, *weight);
  }

  // Returns the weight that the recipe names, or the next one that is not frozen.
  std::optional<Slot> differentiated() const {
    const std::size_t count = weights_.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = (static_cast<std::size_t>(recipe_.differentiated) + i) % count;
      if (!recipe_.layers[at].frozen) return weights_[at];
    }
    return std::nullopt;
  }

  // Differentiates a function of the previous gradient, as often as the recipe says.
  void derive(CodeId forward, Slot w) {
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
    const TypeId scalar = draft_.scalar;
    const Slot x = b_.argument(id);
    const Slot norm = b_.slot(id);
    const CodeId body = draft_.make_body(scalar, {type}, 1, false, type);
    b_.add(id, MakeNode{"NormBackward", b_.node_id(), {x}, {norm}, {x}, body});
    b_.add(id, Op{"norm", {x}, {norm}, {scalar}, {}, 0, 4096, 4, 0});
    b_.result(id, norm);
    return id;
  }

  const Recipe& recipe_;
  const LateWrites writes_;
  Draft draft_;
  Builder& b_;
  const std::vector<Slot>& weights_;
};

}  // namespace

Program make_program(const Recipe& recipe, LateWrites writes) {
  return RandomProgram(recipe, writes).take();
}

std::string gradient_op(int order, std::size_t i) {
  std::string text = "grad";
  text.append(std::to_string(order)).append(".").append(std::to_string(i));
  return text;
}

}  // namespace ferry::verify
