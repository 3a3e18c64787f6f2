// Comparing what two runs of a model make.
#pragma once

#include <rapidcheck.h>
#include <torch/torch.h>

#include <vector>

namespace ferry {

template <class T>
rc::Gen<T> one_of(std::vector<T> values) {
  return rc::gen::map(rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, values.size())),
                      [values](std::size_t i) { return values[i]; });
}

// A NaN is equal to itself here.
inline bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() &&
         a.contiguous().view(torch::kLong).equal(b.contiguous().view(torch::kLong));
}

inline void expect_same(const std::vector<torch::Tensor>& plain,
                        const std::vector<torch::Tensor>& ours) {
  RC_ASSERT(plain.size() == ours.size());
  for (std::size_t i = 0; i < plain.size(); ++i) RC_ASSERT(same_bits(plain[i], ours[i]));
}

// Gradients of `loss`, of the norm of these, and so on; each order's.
inline std::vector<torch::Tensor> derivatives(torch::Tensor loss,
                                              const std::vector<torch::Tensor>& inputs, int order) {
  std::vector<torch::Tensor> found;
  for (; order > 0 && loss.requires_grad(); --order) {
    torch::Tensor norm = torch::zeros({}, torch::kFloat64);
    for (auto& gradient : torch::autograd::grad({loss}, inputs, {}, order > 1, order > 1, true)) {
      if (!gradient.defined()) continue;
      norm = norm + (gradient * gradient).sum();
      found.push_back(std::move(gradient));
    }
    loss = norm;
  }
  return found;
}

}  // namespace ferry
