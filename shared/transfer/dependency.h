// Edges of a graph that carry an order but no gradient.
//
//     x ──▶ fork ──▶ x'            backward: fork waits for whoever took the phony
//            └──▶ phony ──▶ join ──▶ y'
//                     y ──▶ ┘        and join runs before whoever made the phony
//
// A phony is a value without bytes. Source: torchgpipe/dependency.py, phony.py.
#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"
#include "shared/seam/error.h"

namespace ferry {

// Returns a phony; it has no graph if there is nothing to order.
template <PipelineAutograd A>
typename A::Value fork(A autograd, typename A::Value& value) {
  using Values = std::vector<typename A::Value>;
  if (!autograd.grad_mode() || !autograd.requires_grad(value)) return {};
  Values made =
      autograd.node(std::array{value},
                    Values{autograd.leaf(autograd.tensor(value), false), autograd.phony(value)},
                    [](Values gradients) { return Values{std::move(gradients.front())}; });
  value = std::move(made[0]);
  return std::move(made[1]);
}

template <PipelineAutograd A>
void join(A autograd, typename A::Value& value, const typename A::Value& phony) {
  using Values = std::vector<typename A::Value>;
  if (!autograd.grad_mode() || !autograd.requires_grad(phony)) return;
  Values made =
      autograd.node(std::array{value, phony}, Values{autograd.leaf(autograd.tensor(value), false)},
                    [](Values gradients) {
                      return Values{std::move(gradients.front()), {}};
                    });
  value = std::move(made.front());
}

// Returns the value of a micro-batch that carries its order: the first that can have a gradient.
// Null if no value can.
template <PipelineAutograd A>
typename A::Value* find_lane(const A& autograd, std::vector<typename A::Value>& values) {
  for (typename A::Value& value : values) {
    if (autograd.exists(value) && autograd.differentiable(value)) return &value;
  }
  return nullptr;
}
// Returns the same value. Throws ValueError if there is none.
template <PipelineAutograd A>
typename A::Value& lane(const A& autograd, std::vector<typename A::Value>& values) {
  if (typename A::Value* const value = find_lane(autograd, values)) return *value;
  throw make_error<typename A::Tensor>(
      ValueError("No tensor found! A micro-batch needs one that can have a gradient."));
}

}  // namespace ferry
