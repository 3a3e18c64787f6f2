// Rules of checkpoints as cases: little models on LibTorch's autograd, each true where the
// checkpointer does it right. A World is a device's: how it is made, where its leaves are, and its
// type.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ferry/hooks.h"
#include "real/autograd/torch_autograd.h"
#include "shared/checkpoint/checkpointer.h"
#include "tests/real/api/checkpoint/rig.h"

namespace ferry {

using real::TorchAutograd;
using torch::autograd::grad;

template <class World>
class Mutant {
 public:
  using Function = std::function<Tensors(Tensors)>;

  explicit Mutant(Rules rules) : checkpointer_(World::device(), TorchAutograd(), rules) {}

  Tensors run(const Function& function, Tensors inputs, CoreCheckpointOptions options = {}) {
    Tensors results;
    checkpointer_.run(
        std::move(inputs), std::move(options), [function](Tensors again) { function(again); },
        [&](Tensors first) { results = function(std::move(first)); });
    return results;
  }
  Tensor run(const std::function<Tensor(Tensor)>& function, const Tensor& input,
             CoreCheckpointOptions options = {}) {
    return run([function](const Tensors& in) { return Tensors{function(in[0])}; }, Tensors{input},
               std::move(options))[0];
  }
  Tensor run_reentrant(const std::function<Tensor(Tensor)>& function, const Tensor& input) {
    return checkpointer_.run_reentrant(
        {input}, {}, [function](const Tensors& in) { return Tensors{function(in[0])}; })[0];
  }
  CheckpointStatistics statistics() const { return checkpointer_.statistics(); }

 private:
  Checkpointer<typename World::Device, TorchAutograd> checkpointer_;
};

inline CoreCheckpointOptions whole() {
  CoreCheckpointOptions options;
  options.early_stop = false;
  return options;
}

inline Tensor two_ops(const Tensor& x) { return x.exp().sin(); }
inline Tensor three_ops(const Tensor& x) { return x.sin().cos().exp(); }

inline Tensor gradient(const Tensor& y, const Tensor& x, bool retain = false) {
  return grad({y.sum()}, {x}, {}, retain)[0];
}

template <class Error, class Function>
bool throws_an(Function function) {
  try {
    function();
  } catch (const Error&) {
    return true;
  }
  return false;
}

template <class World>
bool inputs_reach_the_hooks_around(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  int packed = 0;
  const SavedTensorsHooks hooks([&](const Tensor& tensor) { return ++packed, tensor; },
                                [](const Tensor& tensor) { return tensor; });
  mutant.run(two_ops, x);
  return packed == 1;
}

template <class World>
bool the_last_one_is_there(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  return gradient(mutant.run(three_ops, x), x).equal(gradient(three_ops(x), x));
}

template <class World>
bool a_recompute_ends_early(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  int ends = 0;
  const Tensor y = mutant.run(
      [&ends](const Tensor& in) {
        const Tensor result = two_ops(in) + 1;
        ++ends;
        return result;
      },
      x);
  gradient(y, x);
  return ends == 1;
}

// From a hook of the first, between its unpacks.
template <class World>
bool a_nested_backward_recomputes_for_itself(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  std::function<void()> nested;
  const Tensor y = mutant.run(
      [&nested](const Tensor& in) {
        const Tensor middle = in.sin().cos();
        if (!is_recomputing())
          middle.register_hook([&nested](const Tensor&) {
            if (const auto once = std::exchange(nested, nullptr)) once();
          });
        return middle.exp();
      },
      x);
  const Tensor expected = gradient(three_ops(x), x);
  Tensor inner;
  const Tensor root = y.sum();  // a backward runs without grad mode
  nested = [&] { inner = grad({root}, {x}, {}, true)[0]; };
  const Tensor outer = gradient(y, x, true);
  return outer.equal(expected) && inner.equal(expected);
}

template <class World>
bool threads_of_a_group_recompute_for_themselves(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  const Tensor y = mutant.run(three_ops, x);
  const auto group = std::make_shared<ExecGroup>();
  const auto backward = [&] {
    const ExecGroupGuard<TorchAutograd> guard(TorchAutograd(), group);
    return gradient(y, x, true);
  };
  const Tensor first = backward();
  Tensor second;
  std::string error;
  std::thread([&] { error = message([&] { second = backward(); }); }).join();
  return second.defined() && first.equal(second);
}

template <class World>
bool accesses_outside_a_backward_recompute(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  const Tensor y = mutant.run(two_ops, x);
  auto& node = dynamic_cast<torch::autograd::generated::SinBackward0&>(*y.grad_fn());
  const Tensor first = node.self_.unpack().detach();
  return first.equal(node.self_.unpack().detach()) && mutant.statistics().recomputes == 2;
}

inline Tensors two_heads(const Tensors& in) { return {two_ops(in[0]), in[0].cos().exp()}; }

template <class World>
bool a_group_recomputes_once(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  const Tensors heads = mutant.run(two_heads, Tensors{x});
  const ExecGroupGuard<TorchAutograd> guard(TorchAutograd(), std::make_shared<ExecGroup>());
  gradient(heads[0], x, true);
  gradient(heads[1], x, true);
  return mutant.statistics().recomputes == 1;
}

// In a retained graph, whose holders stay. The hook runs when the node behind `middle` is done.
template <class World>
bool what_is_unpacked_goes(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  std::optional<WeakStorage> again;
  bool gone = false;
  const Tensor y = mutant.run(
      [&](const Tensor& in) {
        const Tensor middle = in.sin();
        if (is_recomputing()) {
          again = weak(middle);
        } else {
          middle.register_hook([&](const Tensor&) { gone = again && again->expired(); });
        }
        return middle.cos();
      },
      x);
  gradient(y, x, true);
  return gone;
}

// What a group recomputed for a head that is dropped.
template <class World>
bool what_autograd_drops_goes(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  std::optional<WeakStorage> again;
  Tensors heads = mutant.run(
      [&](const Tensors& in) {
        const Tensor middle = in[0].sin();
        again = weak(middle);
        return Tensors{middle.cos(), in[0].exp().sin()};
      },
      Tensors{x});
  const ExecGroupGuard<TorchAutograd> guard(TorchAutograd(), std::make_shared<ExecGroup>());
  gradient(heads[1], x, true);
  const bool held = !again->expired();
  heads[0] = Tensor();
  return held && again->expired();
}

template <class World>
bool what_a_backward_does_not_unpack_goes_with_it(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  std::optional<WeakStorage> again;
  const Tensors heads = mutant.run(
      [&](const Tensors& in) {
        const Tensor middle = in[0].sin();
        again = weak(middle);
        return Tensors{middle.cos(), in[0].exp().sin()};
      },
      Tensors{x});
  gradient(heads[1], x, true);
  return again->expired();
}

template <class World>
bool overlapping_backwards_are_refused(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  const Tensor y = mutant.run(two_ops, x);
  const ExecGroupGuard<TorchAutograd> guard(TorchAutograd(), std::make_shared<ExecGroup>());
  gradient(y, x, true);
  return throws_an<CheckpointError>([&] { gradient(y, x, true); });
}

template <class World>
bool random_numbers_come_again(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({64});
  const auto drop = [](const Tensor& in) { return torch::dropout(in, 0.5, true); };
  const Tensor y = mutant.run(drop, x);
  return (gradient(y, x) != 0).equal(y.detach() != 0);
}

template <class World>
bool autocast_comes_again(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({4, 4});
  std::vector<bool> enabled;
  at::autocast::set_autocast_enabled(World::kType, true);
  const Tensor y = mutant.run(
      [&enabled](const Tensor& in) {
        enabled.push_back(at::autocast::is_autocast_enabled(World::kType));
        return two_ops(in);
      },
      x);
  at::autocast::set_autocast_enabled(World::kType, false);
  gradient(y, x);
  return enabled == std::vector<bool>{true, true};
}

template <class World>
bool a_recompute_makes_a_graph(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  return gradient(mutant.run(two_ops, x), x).equal(gradient(two_ops(x), x));
}

template <class World>
bool another_recompute_is_refused(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  const Tensor y = mutant.run(
      [](const Tensor& in) {
        return (is_recomputing() ? torch::cat({in, in}) : in).sin().sum().exp() * 1.0;
      },
      x);
  return throws_an<CheckpointError>([&] { gradient(y, x); });
}

template <class World>
bool what_is_dropped_may_be_another(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  const Tensor y = mutant.run(
      [](const Tensor& in) {
        { const Tensor dead = (is_recomputing() ? torch::cat({in, in}) : in + 1).sin(); }
        return two_ops(in);
      },
      x);
  return gradient(y, x).equal(gradient(two_ops(x), x));
}

template <class World>
bool what_is_kept_is_not_held_twice(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  std::optional<WeakStorage> again;
  bool gone = false;
  CoreCheckpointOptions options;
  options.choices = {SavedChoice::kKeep};
  const Tensor y = mutant.run(
      [&](const Tensor& in) {
        const Tensor first = in.exp();  // saved here alone, and kept
        const Tensor middle = (first + 1).sin();
        if (is_recomputing()) {
          again = weak(first);
        } else {
          middle.register_hook([&](const Tensor&) { gone = again && again->expired(); });
        }
        return middle.cos();
      },
      x, options);
  gradient(y, x, true);
  return gone;
}

template <class World>
bool choices_are_forwards(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  CoreCheckpointOptions inner = whole();
  inner.choices = {SavedChoice::kKeep, SavedChoice::kKeep};
  const Tensor y = mutant.run(
      [&](const Tensor& in) { return mutant.run(two_ops, in.cos(), inner).exp(); }, x, whole());
  gradient(y, x);
  return mutant.statistics().kept == 2;
}

// The one inside recomputes a forward that has yet to save more.
template <class World>
bool a_backward_inside_may_recompute(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  const auto block = [](const Tensor& in) {
    const Tensor y = two_ops(in);
    return (grad({y.sum()}, {in}, {}, true, /*create_graph=*/true)[0] * y).cos().exp();
  };
  return gradient(mutant.run(block, x, whole()), x).equal(gradient(block(x), x));
}

template <class World>
bool reentrant_inputs_are_leaves(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  mutant.run_reentrant(two_ops, x.cos()).sum().backward();
  return x.grad().equal(gradient(two_ops(x.cos()), x));
}

template <class World>
bool reentrant_refuses_grad(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  const Tensor y = mutant.run_reentrant(two_ops, x);
  return message([&] { gradient(y, x); }).find(checkpoint_text::kReentrantInvalid) !=
         std::string::npos;
}

// `exp` saves its result.
template <class World>
bool what_is_recomputed_may_be_written(Rules rules) {
  Mutant<World> mutant(rules);
  const Tensor x = World::leaf({3});
  const auto function = [](const Tensor& in) { return in.exp(); };
  const Tensor y = mutant.run(function, x);
  y.detach().add_(1);
  return gradient(y, x).equal(gradient(function(x), x));
}

using CheckpointCase = bool (*)(Rules);

template <class World>
const std::map<Rule, CheckpointCase>& checkpoint_cases() {
  static const std::map<Rule, CheckpointCase> all = {
      {Rule::kOuterInputs, inputs_reach_the_hooks_around<World>},
      {Rule::kStopAtLast, the_last_one_is_there<World>},
      {Rule::kStopEarly, a_recompute_ends_early<World>},
      {Rule::kTaskKey, a_nested_backward_recomputes_for_itself<World>},
      {Rule::kThreadKey, threads_of_a_group_recompute_for_themselves<World>},
      {Rule::kFreshOutside, accesses_outside_a_backward_recompute<World>},
      {Rule::kGroupKey, a_group_recomputes_once<World>},
      {Rule::kFreeUnpacked, what_is_unpacked_goes<World>},
      {Rule::kFreeUnneeded, what_autograd_drops_goes<World>},
      {Rule::kFreeAtEnd, what_a_backward_does_not_unpack_goes_with_it<World>},
      {Rule::kRefuseTwice, overlapping_backwards_are_refused<World>},
      {Rule::kReplayRandom, random_numbers_come_again<World>},
      {Rule::kReplayAmbient, autocast_comes_again<World>},
      {Rule::kRecomputeGrad, a_recompute_makes_a_graph<World>},
      {Rule::kCheckRecompute, another_recompute_is_refused<World>},
      {Rule::kSkipDead, what_is_dropped_may_be_another<World>},
      {Rule::kKeepChosen, what_is_kept_is_not_held_twice<World>},
      {Rule::kFirstChoice, choices_are_forwards<World>},
      {Rule::kUnfinished, a_backward_inside_may_recompute<World>},
      {Rule::kDetachReentrant, reentrant_inputs_are_leaves<World>},
      {Rule::kRefuseReentrant, reentrant_refuses_grad<World>}};
  return all;
}

// Whatever a mutant throws is caught, too.
inline bool right(CheckpointCase each, Rules rules) {
  try {
    return each(rules);
  } catch (const std::exception&) {
    return false;
  }
}

inline std::vector<Rule> checkpoint_rules() {
  std::vector<Rule> all;
  for (std::size_t i = static_cast<std::size_t>(Rule::kOuterInputs); i < kCheckpointRules; ++i) {
    all.push_back(static_cast<Rule>(i));
  }
  return all;
}

}  // namespace ferry
