// What the tests of checkpoint share: leaves, derivatives, and counts.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "ferry/checkpoint.h"

namespace ferry {

using at::Tensor;
using Tensors = std::vector<Tensor>;

inline Tensor leaf(at::IntArrayRef shape, std::uint64_t seed = 1) {
  torch::manual_seed(seed);
  return (torch::rand(shape, torch::kFloat64) + 0.1).set_requires_grad(true);
}

inline ::testing::AssertionResult same(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return ::testing::AssertionFailure() << "one is undefined";
  if (!a.defined() || (a.dtype() == b.dtype() && a.equal(b))) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << a << "\nis not\n" << b;
}

inline ::testing::AssertionResult same(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (auto result = same(a[i], b[i]); !result) return result << "\nnumber " << i;
  }
  return ::testing::AssertionSuccess();
}

inline Tensors detached(const Tensors& tensors) {
  Tensors result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.detach());
  return result;
}

// The value of a function, and its derivatives up to that order.
inline Tensors derivatives(const std::function<Tensor(const Tensors&)>& function,
                           const Tensors& inputs, int order) {
  Tensors result;
  Tensor root = function(inputs);
  for (int i = 0; i < order; ++i) {
    result.push_back(root.detach());
    Tensors gradients = torch::autograd::grad({root.pow(2).sum()}, inputs, {}, true, i + 1 < order);
    for (const Tensor& gradient : gradients) result.push_back(gradient.detach());
    root = gradients[0];
    for (std::size_t j = 1; j < gradients.size(); ++j) root = root + gradients[j].sum();
  }
  return result;
}

template <class Function>
std::string message(Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(nothing thrown)";
}

template <class Error = CheckpointError, class Function>
::testing::AssertionResult throws(const std::string& text, Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    if constexpr (!std::is_same_v<Error, std::exception>) {
      if (!dynamic_cast<const Error*>(&error)) {
        return ::testing::AssertionFailure() << "another type: " << error.what();
      }
    }
    if (std::string(error.what()).find(text) != std::string::npos) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << error.what();
  }
  return ::testing::AssertionFailure() << "nothing thrown";
}

// What happened since it was made.
class Since {
 public:
  std::int64_t segments() const { return checkpoint_statistics().segments - before_.segments; }
  std::int64_t recomputes() const {
    return checkpoint_statistics().recomputes - before_.recomputes;
  }
  std::int64_t stopped() const {
    return checkpoint_statistics().stopped_early - before_.stopped_early;
  }
  std::int64_t saved() const { return checkpoint_statistics().saved - before_.saved; }
  std::int64_t kept() const { return checkpoint_statistics().kept - before_.kept; }
  std::int64_t passed_on() const { return checkpoint_statistics().passed_on - before_.passed_on; }
  std::int64_t alive() const { return checkpoint_statistics().alive - before_.alive; }

 private:
  CheckpointStatistics before_ = checkpoint_statistics();
};

inline CheckpointOptions to_the_end() { return CheckpointOptions().early_stop(false); }

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
inline WeakStorage weak(const Tensor& tensor) { return tensor.storage().getWeakStorageImpl(); }

}  // namespace ferry
