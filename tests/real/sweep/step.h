// One call in a training step, and all that the step gives.
//
// The call's floating-point tensors become leaves that require a gradient, and the call gets views
// or copies of them, made within the segment: a leaf is not written in place, and a saved tensor
// then is what a layout makes of it. The segment ends with the call, or goes on with ops that save
// what the call returned.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/real/sweep/calls.h"

namespace ferry::sweep {

using Tensors = std::vector<at::Tensor>;

// How an argument's tensor is made from a leaf: by a view of its copy.
struct Leaf {
  at::Tensor value;
  std::function<at::Tensor(const at::Tensor&)> view;
  bool requires_grad = true;
};

// A call whose tensors are leaves, in the order of tensors_in.
struct Case {
  Call call;
  std::vector<Leaf> leaves;
};

enum class Place { kLast, kFollowed };

// Runs `forward`, and `then` on what it returned, with whatever is tried around them.
using Forward = std::function<Tensors()>;
using Way = std::function<void(const Forward& forward, const std::function<void(Tensors)>& then)>;

// What a step gives, in this order. Gradients come twice: with a graph, some formulas are others.
inline constexpr std::array kParts = {"the outputs", "a gradient", "a gradient with a graph",
                                      "a second-order gradient"};

struct Outcome {
  std::vector<Tensors> parts;  // an undefined tensor where there is none
  at::Tensor generator;
  bool differentiable = false;  // an output requires a gradient
  std::string error;            // of the part after the last; empty: none
};

// How many of the parts a step is asked for: some graphs go backward once.
enum class Backwards : std::size_t { kOne = 2, kSeveral = 4 };

Outcome run_step(const Case& drawn, Place place, const Way& way, Backwards backwards);

// What differs, for a reader; empty: nothing, to the bit. `plain` has all parts, or has raised.
std::string difference(const Outcome& plain, const Outcome& other, Backwards backwards);

}  // namespace ferry::sweep
