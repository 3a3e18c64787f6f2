#include "ferry/selective.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ferry/checkpoint.h"
#include "ferry/hooks.h"
#include "ferry/offload.h"
#include "real/autograd/below_autograd.h"

namespace ferry {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Names = std::vector<std::string>;
using Contexts = std::function<CheckpointContexts()>;
using enum CheckpointPolicy;

// The ops that have run under selective scopes: what a scope answers is not among them.
std::map<std::string, int>& ran() {
  static std::map<std::string, int> ran;
  return ran;
}
void count(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  ++ran()[c10::toString(op.operator_name())];
  real::run_below(op, keys, stack);
}

CheckpointOptions with(Contexts contexts) {
  return CheckpointOptions().context_fn(std::move(contexts));
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

class SelectiveTest : public ::testing::Test {
 protected:
  using Function = std::function<Tensor(const Tensor& x, const Tensor& w)>;

  SelectiveTest() {
    torch::manual_seed(7);
    x = torch::randn({16, 16}).requires_grad_();
    w = torch::randn({16, 16}).requires_grad_();
    ran().clear();
    real::observe_below_autograd(&count);
  }
  ~SelectiveTest() override {
    real::observe_below_autograd(nullptr);
    EXPECT_FALSE(c10::impl::tls_is_dispatch_key_included(real::kBelowAutograd));
    EXPECT_EQ(checkpoint_statistics().alive, alive_);
  }

  // The value, and the gradients of its sum.
  Tensors run(const std::function<Tensor()>& function) {
    torch::manual_seed(11);
    const Tensor y = function();
    Tensors results = torch::autograd::grad({y.sum()}, {x, w});
    results.push_back(y.detach());
    results.push_back(torch::rand({4}));  // where the generator is now
    return results;
  }
  void expect_as_plain(const Function& function, const CheckpointOptions& options) {
    const Tensors plain = run([&] { return function(x, w); });
    const Tensors ours = run([&] { return checkpoint(options, function, x, w); });
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(plain[i].equal(ours[i])) << "result " << i;
    }
  }
  std::string error_of(const Function& function, const Contexts& contexts) {
    return message_of([&] { checkpoint(with(contexts), function, x, w).sum().backward(); });
  }

  Tensor x, w;

 private:
  const std::int64_t alive_ = checkpoint_statistics().alive;
};

Tensor layers(const Tensor& x, const Tensor& w) { return x.mm(w).relu().mm(w).relu().exp(); }

TEST_F(SelectiveTest, WhatTheListNamesRunsOnce) {
  expect_as_plain(layers, with(selective({"aten::mm", "aten::exp.default"})));
  EXPECT_EQ(ran()["aten::mm"], 2);
  EXPECT_EQ(ran()["aten::exp"], 1);
  EXPECT_EQ(ran()["aten::relu"], 4);
}

TEST_F(SelectiveTest, WithoutItTheyRunTwice) {
  expect_as_plain(layers, with(selective([](const SelectiveCall&) { return false; })));
  EXPECT_EQ(ran()["aten::mm"], 4);
  EXPECT_EQ(ran()["aten::relu"], 4);
}

TEST_F(SelectiveTest, ThePolicyIsAskedInForwardAlone) {
  Names asked;
  const auto contexts = selective([&](const SelectiveCall& call) {
    asked.push_back(call.op + " " + std::to_string(call.index) + " of " +
                    std::to_string(call.arguments.size()));
    EXPECT_TRUE(call.arguments[0].isTensor());
    call.arguments[0].toTensor().mul(2);  // nobody is asked about it
    return call.op == "aten::mm" && call.index == 1 ? kMustSave : kMustRecompute;
  });
  expect_as_plain(layers, with(contexts));
  EXPECT_EQ(asked, (Names{"aten::mm 0 of 2", "aten::relu 0 of 1", "aten::mm 1 of 2",
                          "aten::relu 1 of 1", "aten::exp 0 of 1"}));
  EXPECT_EQ(ran()["aten::mm"], 3);
}

// It throws again in the recompute, and the others' results are theirs.
TEST_F(SelectiveTest, AnOpThatThrewIsNotKept) {
  const auto tries = [](const Tensor& input, const Tensor& weight) {
    Tensor y = input;
    try {
      y = input.mm(weight.narrow(0, 0, 3));
    } catch (const c10::Error&) {
      y = y.mm(weight).exp();
    }
    return y.mm(weight);
  };
  expect_as_plain(tries, with(selective({"aten::mm"})));
}

TEST_F(SelectiveTest, EachCheckpointedCallHasItsOwnCache) {
  const auto options = with(selective({"aten::mm"}));
  expect_as_plain(
      [&](const Tensor& input, const Tensor& weight) {
        const Tensor once = checkpoint(options, layers, input, weight);
        return checkpoint(options, layers, once.tanh(), weight);
      },
      CheckpointOptions().early_stop(false));
}

TEST_F(SelectiveTest, WhatViewsAndWritesAlwaysRuns) {
  std::set<std::string> asked;
  const Function function = [](const Tensor& input, const Tensor& weight) {
    const Tensor y = at::linear(input, weight);  // a view of the weight
    Tensor out = torch::empty({0});
    {
      const at::NoGradGuard no_grad;
      at::add_out(out, y, y);
    }
    const Tensor z = y.mul(2);
    z.add_(out);  // written before anybody keeps it
    return z.view({-1}).sigmoid();
  };
  const auto contexts = selective([&](const SelectiveCall& call) {
    asked.insert(call.op);
    return call.op == "aten::mm" || call.op == "aten::sigmoid";
  });
  expect_as_plain(function, with(contexts));
  EXPECT_EQ(asked, (std::set<std::string>{"aten::mm", "aten::mul.Scalar", "aten::sigmoid"}));
  EXPECT_EQ(ran()["aten::mm"], 1);
  EXPECT_EQ(ran()["aten::add_.Tensor"], 2);
  EXPECT_EQ(ran()["aten::add.out"], 2);
}

TEST_F(SelectiveTest, AllKindsOfOutputsComeBack) {
  const Function function = [](const Tensor& input, const Tensor& weight) {
    const auto [normal, mean, rstd] = at::native_layer_norm(input.mm(weight), {16}, {}, {}, 1e-5);
    const Tensors parts = at::split_with_sizes_copy(normal, {4, 12}, 1);
    const auto [values, indices] = parts[1].topk(3);
    const Tensor heads = normal.view({1, 2, 16, 8});
    const Tensor attention = at::scaled_dot_product_attention(heads, heads, heads);
    return parts[0].exp().sum() + values.exp().sum() + attention.exp().sum();
  };
  std::set<std::string> kept;
  const auto contexts = selective([&](const SelectiveCall& call) {
    kept.insert(call.op);
    return true;
  });
  expect_as_plain(function, with(contexts));
  for (const char* const op : {"aten::native_layer_norm", "aten::split_with_sizes_copy",
                               "aten::topk", "aten::_scaled_dot_product_flash_attention_for_cpu"}) {
    EXPECT_TRUE(kept.contains(op)) << op;
    EXPECT_EQ(ran()[op], 1) << op;
  }
}

TEST_F(SelectiveTest, OffloadedOutputsGoToTheGuardAround) {
  // How many storages leave the device in one run.
  const auto offloaded = [&](const Function& function, CheckpointPolicy for_mm, bool nested) {
    const Offload offload(OffloadOptions().min_bytes(0).window(0).prefetch(0));
    const auto options = with(selective([for_mm](const SelectiveCall& call) {
      return call.op == "aten::mm" ? for_mm : kPreferRecompute;
    }));
    const Function segment = [&](const Tensor& input, const Tensor& weight) {
      return checkpoint(options, function, input, weight);
    };
    {
      const Tensors plain = run([&] { return function(x, w); });
      const OffloadGuard guard(offload);
      const Tensors ours = run([&] { return nested ? checkpoint(segment, x, w) : segment(x, w); });
      for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(plain[i].equal(ours[i]));
    }
    EXPECT_TRUE(offload.empty());
    // The inputs, which are alive, and what was packed last are still on the device.
    EXPECT_EQ(offload.statistics().reloaded_count, for_mm == kPreferOffload ? 1 : 0);
    return offload.statistics().offloaded_count;
  };
  for (const bool nested : {false, true}) {  // a checkpoint's own pair is passed by
    const std::int64_t inputs = offloaded(layers, kPreferRecompute, nested);
    EXPECT_EQ(offloaded(layers, kPreferOffload, nested), inputs + 2);
    EXPECT_EQ(offloaded(layers, kMustSave, nested), inputs);
  }
}

TEST_F(SelectiveTest, WithoutHooksAroundOffloadedOutputsAreKept) {
  expect_as_plain(layers, with(selective([](const SelectiveCall&) { return kMustOffload; })));
  EXPECT_EQ(ran()["aten::mm"], 2);
}

TEST_F(SelectiveTest, HooksOfTheUsersMayRunOps) {
  int packs = 0;
  const SavedTensorsHooks hooks(
      [&](const Tensor& tensor) {
        packs += tensor.dim() == 2 && tensor.size(1) == 32 ? 1 : 0;
        return tensor.mul(2);
      },
      [](const Tensor& packed) { return packed.div(2); });
  const auto contexts = selective([](const SelectiveCall& call) {
    return call.op == "aten::cat" ? kMustOffload : kMustRecompute;
  });
  expect_as_plain(
      [](const Tensor& input, const Tensor& weight) {
        return at::cat({input.mul(weight), weight}, 1).exp();
      },
      with(contexts));
  EXPECT_GT(packs, 0);
  EXPECT_EQ(ran()["aten::div.Tensor"], 0);
}

TEST_F(SelectiveTest, AKeptTensorThatWasWrittenIsRefused) {
  const Function function = [](const Tensor& input, const Tensor& weight) {
    return input.mm(weight).relu_().exp().mul(input);
  };
  const std::string mutated =
      "Tensor cached during selective activation checkpoint has been mutated";
  EXPECT_EQ(error_of(function, selective({"aten::mm"})), mutated);
  const auto offloaded = selective([](const SelectiveCall&) { return kMustOffload; });
  {
    const OffloadGuard guard(OffloadOptions().min_bytes(0).window(0));
    EXPECT_EQ(error_of(function, offloaded), mutated);
  }
  expect_as_plain(function, with(selective({"aten::mm"}, /*allow_cache_entry_mutation=*/true)));
}

TEST_F(SelectiveTest, ARegionIsRunBackwardThroughOnce) {
  const Tensor loss = checkpoint(with(selective({"aten::mm"})), layers, x, w).sum();
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_EQ(message_of([&] { loss.backward(); }),
            "Trying to backward an extra time. You are only allowed to backward once on any region "
            "computed under selective activation checkpoint.");
}

TEST_F(SelectiveTest, WithNothingKeptItMayBeRunBackwardThroughAgain) {
  const Tensor loss = checkpoint(with(selective(Names{})), layers, x, w).sum();
  const Tensor first = torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true)[0];
  EXPECT_TRUE(torch::autograd::grad({loss}, {x})[0].equal(first));
}

TEST_F(SelectiveTest, ARecomputeThatRunsOtherOpsIsRefused) {
  const std::string why =
      " encountered during backward but not found in storage. This can happen if the operations in "
      "the checkpointed region are nondeterministic or depend on global state that changed between "
      "forward and backward.";
  const auto other = [](const Tensor& input, const Tensor& weight) {
    const Tensor y = is_recomputing() ? input.tanh() : input.exp();
    return y.mm(weight).exp();
  };
  const auto more = [](const Tensor& input, const Tensor& weight) {
    Tensor y = input.exp();
    if (is_recomputing()) y = y.exp();
    return y.mm(weight).sin();
  };
  EXPECT_EQ(error_of(other, selective({"aten::tanh"})), "aten::tanh" + why);
  EXPECT_EQ(error_of(more, selective({"aten::exp"})), "aten::exp invocation index 1" + why);
}

TEST_F(SelectiveTest, NamesThatNoPolicyMeetsAreRefused) {
  const std::string expected =
      "Expected op in `op_list` to be the name of an operator with its overload but got: ";
  for (const auto& [op, why] : std::map<std::string, std::string>{
           {"aten::no_such_op", "There is no such operator."},
           {"aten::mm.Tensor", "There is no such operator."},
           {"aten::linear",
            "It is made of other operators: name those (of `aten::linear`, `aten::addmm`)."},
           {"aten::relu_",
            "It writes an argument or computes no tensor of its own, and always runs again."},
           {"aten::add.out",
            "It writes an argument or computes no tensor of its own, and always runs again."},
           {"aten::view",
            "It writes an argument or computes no tensor of its own, and always runs again."}}) {
    EXPECT_EQ(message_of([&, &name = op] {
                selective({"aten::mm", name});
              }),
              expected + op + ". " + why);
  }
  EXPECT_NE(message_of([] { selective({"aten::add"}); }).find("`aten::add.Tensor`"),
            std::string::npos);
  EXPECT_EQ(message_of([] { selective(SelectivePolicy()); }),
            "policy_fn_or_list must be either a function or a list of ops.");
}

// Skipping an op that draws would shift what the next one draws.
TEST_F(SelectiveTest, WhatDrawsAfterAKeptOpDrawsTheSame) {
  const Function function = [](const Tensor& input, const Tensor& weight) {
    const Tensor y = input.mul(at::rand_like(input)).mm(weight);
    return y.mul(at::bernoulli(at::full_like(y, 0.5))).exp();
  };
  expect_as_plain(function, with(selective({"aten::rand_like"})));
  EXPECT_EQ(ran()["aten::rand_like"], 1);
  EXPECT_EQ(ran()["aten::bernoulli"], 2);
  ran().clear();
  expect_as_plain(function, with(selective({"aten::bernoulli"})));
}

TEST_F(SelectiveTest, WithoutRandomStateAKeptOpLeavesTheGeneratorAlone) {
  const Function function = [](const Tensor& input, const Tensor& weight) {
    return input.mul(at::rand_like(input)).mm(weight).exp();
  };
  expect_as_plain(function,
                  with(selective({"aten::rand_like", "aten::mm"})).preserve_rng_state(false));
}

TEST_F(SelectiveTest, WhatThrowsLeavesTheScope) {
  const auto included = [] {
    return c10::impl::tls_is_dispatch_key_included(real::kBelowAutograd);
  };
  const Function throws = [&](const Tensor& input, const Tensor& weight) {
    EXPECT_TRUE(included());
    input.mm(weight);
    throw std::runtime_error("the function's");
    return input;
  };
  EXPECT_EQ(error_of(throws, selective({"aten::mm"})), "the function's");
  EXPECT_FALSE(included());
  const auto policy = selective(SelectivePolicy(
      [](const SelectiveCall&) -> CheckpointPolicy { throw std::runtime_error("the policy's"); }));
  EXPECT_EQ(error_of(layers, policy), "the policy's");
  EXPECT_FALSE(included());
  expect_as_plain(layers, with(selective({"aten::mm"})));
  EXPECT_FALSE(included());
}

TEST_F(SelectiveTest, ScopesNest) {
  const auto inner = with(selective({"aten::exp"}));
  const Function function = [&](const Tensor& input, const Tensor& weight) {
    const Tensor y = checkpoint(inner, layers, input.mm(weight).tanh(), weight);
    return y.sigmoid().mm(weight).tanh();
  };
  expect_as_plain(function, with(selective({"aten::mm"})).early_stop(false));
}

TEST_F(SelectiveTest, ABackwardInsideTheFunctionIsSeenInBothRuns) {
  const Function function = [](const Tensor& input, const Tensor& weight) {
    const Tensor leaf = input.detach().requires_grad_();
    const Tensor slope = torch::autograd::grad({leaf.mul(leaf).exp().sum()}, {leaf})[0];
    return slope.tanh().mul(input).mm(weight).exp();
  };
  expect_as_plain(function, with(selective({"aten::mm", "aten::tanh"})));
  EXPECT_EQ(ran()["aten::tanh"], 1);
}

TEST_F(SelectiveTest, KeptOutputsDieWithTheGraph) {
  c10::weak_intrusive_ptr<c10::StorageImpl> product(c10::Storage().getWeakStorageImpl());
  const auto policy = selective([](const SelectiveCall& call) { return call.op == "aten::mm"; });
  {
    const Tensor y = checkpoint(
        with(policy),
        [&](const Tensor& input, const Tensor& weight) {
          const Tensor kept = input.mm(weight);
          product = kept.storage().getWeakStorageImpl();
          return kept.exp();
        },
        x, w);
    EXPECT_FALSE(product.expired());
  }
  EXPECT_TRUE(product.expired());
}

// Whatever a policy says, and whatever is around, results are the same bits.
TEST_F(SelectiveTest, AnyPolicyComputesTheSame) {
  const Function function = [](const Tensor& input, const Tensor& weight) {
    const Tensor y = at::linear(input, weight).relu();
    const Tensor noise = at::bernoulli(at::full_like(y, 0.5));
    const Tensor dropped = at::dropout(y.mul(noise), 0.25, /*train=*/true);
    const Tensor z = at::layer_norm(dropped, {16}).add(input);
    const Tensors halves = z.chunk(2, 1);
    return at::cat({halves[0].exp(), halves[1].sigmoid().mm(weight.narrow(0, 0, 8))}, 1).tanh();
  };
  for (std::size_t seed = 0; seed < 40; ++seed) {
    const auto contexts = selective([seed](const SelectiveCall& call) {
      const std::size_t hash = std::hash<std::string>()(call.op + std::to_string(call.index) + "/" +
                                                        std::to_string(seed));
      return static_cast<CheckpointPolicy>(hash % 6);
    });
    std::optional<OffloadGuard> guard;
    if (seed % 2 == 1) guard.emplace(OffloadOptions().min_bytes(0).window(0));
    expect_as_plain(function, with(contexts).early_stop(seed % 3 != 0));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ferry
