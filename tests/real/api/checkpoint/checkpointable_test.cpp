// What can be checkpointed, and what is told at once that it cannot.
#include "ferry/checkpointable.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ferry/checkpoint.h"
#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

struct Scale : torch::nn::Module {
  Scale() : weight(register_parameter("weight", torch::full({}, 3.0, torch::kFloat64))) {}
  Tensor forward(const Tensor& x) { return (x * weight).sin(); }
  Tensor weight;
};

Tensor plain(const Tensor& weight, const Tensor& x) {
  weight.mutable_grad() = Tensor();
  const Tensor in = x.detach().requires_grad_();
  (in * weight).sin().sum().backward();
  return std::exchange(weight.mutable_grad(), Tensor());
}

// The gradient of the module's parameter is the plain one, however the module is given.
template <class Net>
void expect_right(Net&& net, const Tensor& weight) {
  const Tensor x = leaf({5});
  const Tensor expected = plain(weight, x);
  const Since since;
  checkpoint(std::forward<Net>(net), x).sum().backward();
  EXPECT_EQ(since.recomputes(), 1);
  EXPECT_TRUE(same(weight.grad(), expected));
}

TEST(Checkpointable, AModuleInEveryFormThatHasAForward) {
  const auto shared = std::make_shared<Scale>();
  const Tensor& weight = shared->weight;
  expect_right(*shared, weight);
  expect_right(shared, weight);
  expect_right(shared.get(), weight);
  expect_right(std::ref(*shared), weight);
  expect_right(torch::nn::ModuleHolder<Scale>(shared), weight);
  expect_right(torch::nn::AnyModule(shared), weight);
  torch::nn::AnyModule any(shared);
  expect_right(std::ref(any), weight);
  torch::nn::Sequential sequential(shared);
  expect_right(sequential, weight);
  expect_right(*sequential, weight);
  expect_right(std::ref(*sequential), weight);
}

TEST(Checkpointable, AFunctionMayReturnTensorsBesideOtherThings) {
  const Tensor x = leaf({4});
  const auto [y, size, name] = checkpoint(
      [](const Tensor& in) {
        return std::tuple<Tensor, int, std::string>(in.exp().sin(), 4, "sin");
      },
      x);
  EXPECT_EQ(size, 4);
  EXPECT_EQ(name, "sin");
  const auto pair = checkpoint([](const Tensor& in) { return std::pair(in.exp().sin(), 5); }, x);
  EXPECT_EQ(pair.second, 5);
  (y + pair.first).sum().backward();
  const Tensor in = x.detach().requires_grad_();
  (in.exp().sin() + in.exp().sin()).sum().backward();
  EXPECT_TRUE(same(x.grad(), in.grad()));
}

// They compile, since whether they are reentrant is said at run time.
TEST(Checkpointable, AReentrantOneSaysThatItReturnsTensorsAlone) {
  const auto reentrant = CheckpointOptions().reentrant(true);
  const Tensor x = leaf({4});
  const auto mixed = [](const Tensor& in) { return std::pair(in.exp(), 5); };
  EXPECT_TRUE(throws<ValueError>("a vector, an array or a tuple of tensors",
                                 [&] { checkpoint(reentrant, mixed, x); }));
  const auto tensors = [](const Tensor& in) { return std::array{in.exp(), in.sin()}; };
  const auto [a, b] = checkpoint(reentrant, tensors, x);
  (a + b).sum().backward();
  EXPECT_TRUE(same(x.grad(), x.detach().exp() + x.detach().cos()));
}

struct NoForward : torch::nn::Module {};
using Sine = Tensor (*)(const Tensor&);
using Written = void (*)(int&);
struct OnlyMoved {
  std::unique_ptr<int> token;
  Tensor operator()(const Tensor& x) const { return x; }
};

static_assert(Checkpointable<Sine, Tensor>);
static_assert(Checkpointable<Sine, Tensor&>);
static_assert(Checkpointable<torch::nn::Linear&, const Tensor&>);
static_assert(Checkpointable<OnlyMoved, Tensor>);
static_assert(!Checkpointable<OnlyMoved&, Tensor>, "pass std::ref, or std::move");
static_assert(Checkpointable<std::reference_wrapper<OnlyMoved>, Tensor>);
static_assert(!Checkpointable<Sine>, "too few arguments");
static_assert(!Checkpointable<Sine, std::string>, "an argument of another type");
static_assert(!Checkpointable<Written, int>, "the others are handed over as const lvalues");
static_assert(!Checkpointable<NoForward, Tensor>);
static_assert(!Checkpointable<std::shared_ptr<NoForward>, Tensor>);
static_assert(!Checkpointable<torch::nn::ModuleList, Tensor>, "a list has no forward");
static_assert(!Checkpointable<torch::nn::ModuleListImpl, Tensor>);
static_assert(!Checkpointable<std::reference_wrapper<torch::nn::ModuleList>, Tensor>);
static_assert(!Checkpointable<std::shared_ptr<torch::nn::Module>, Tensor>);
static_assert(!Checkpointable<torch::nn::Linear, std::string>);
static_assert(!Checkpointable<int, Tensor>);

}  // namespace
}  // namespace ferry
