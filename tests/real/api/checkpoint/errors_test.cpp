// What goes wrong, with PyTorch's types and texts; and the faults of PyTorch 2.11 that are not
// copied.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>

#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

// Runs `forward` once, and then `again`.
template <class Forward, class Again>
Tensor changing(const CheckpointOptions& options, const Tensor& x, Forward forward, Again again) {
  return checkpoint(
             options, [=](const Tensor& in) { return is_recomputing() ? again(in) : forward(in); },
             x)
      .sum();
}
Tensor two(const Tensor& x) { return x.exp().sin(); }
Tensor three(const Tensor& x) { return x.exp().sin().exp(); }

TEST(CheckpointErrors, FewerTensors) {
  const Tensor y = changing({}, leaf({3}), three, two);
  const std::string text =
      "A different number of tensors was saved during the original forward and recomputation.\n"
      "Number of tensors saved during forward: 3\n"
      "Number of tensors saved during recomputation: 2.";
  EXPECT_TRUE(throws(text, [&] { y.backward({}, true); }));
  const auto unchecked = CheckpointOptions().determinism_check(DeterminismCheck::kNone);
  EXPECT_TRUE(throws(text, [&] { changing(unchecked, leaf({3}), three, two).backward(); }));
}

TEST(CheckpointErrors, OtherMetadata) {
  const Tensor y = changing({}, leaf({3}), two, [](const Tensor& x) {
    return torch::cat({x, x}).exp().sin();
  });
  const std::string text = message([&] { y.backward(); });
  EXPECT_NE(text.find("Recomputed values for the following tensors have different metadata than "
                      "during the forward pass.\ntensor at position 0:\nsaved metadata: shape [3], "
                      "dtype Double, device cpu\nrecomputed metadata: shape [6], dtype Double"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("tensor at position 1:"), std::string::npos) << text;
}

TEST(CheckpointErrors, ValuesAreNotCompared) {
  const auto other = [](const Tensor& x) { return (x * 1.).exp().sin(); };
  EXPECT_NO_THROW(changing({}, leaf({3}), two, other).backward());
}

TEST(CheckpointErrors, MoreTensors) {
  EXPECT_TRUE(throws(
      "trying to save more tensors during recomputation than during the original forward pass.",
      [] { changing(to_the_end(), leaf({3}), two, three).backward(); }));
  // With early stop nobody notices.
  EXPECT_NO_THROW(changing({}, leaf({3}), two, three).backward());
}

TEST(CheckpointErrors, DebugNamesTheFirstOpThatDiffers) {
  const auto text = [](const Tensor& y) { return message([&] { y.backward(); }); };
  const auto debug = CheckpointOptions().debug(true);
  const auto forward = [](const Tensor& x) { return x.exp().sin().exp(); };
  const auto again = [](const Tensor& x) { return torch::cat({x.exp(), x.exp()}).cos(); };
  const std::string differs =
      "First op that differs (number 1):\n  forward:   aten::sin [3]\n  recompute: aten::exp [3]";
  for (const std::string& found : {text(changing(debug, leaf({3}), forward, again)), [&] {
                                     const CheckpointDebugGuard guard(true);
                                     return text(changing({}, leaf({3}), forward, again));
                                   }()}) {
    EXPECT_EQ(found.find("ERROR: Detected non-determinism while running activation checkpointing"),
              0u)
        << found;
    EXPECT_NE(found.find(differs), std::string::npos) << found;
    EXPECT_NE(found.find("You are seeing this error because you passed `debug(true)`"),
              std::string::npos);
  }
  const std::string more =
      text(changing(CheckpointOptions(debug).early_stop(false), leaf({3}), two, three));
  EXPECT_EQ(more.find("ERROR: Detected non-determinism"), 0u) << more;
  EXPECT_NE(more.find("recompute: aten::exp [3]"), std::string::npos) << more;
  EXPECT_NO_THROW(changing(debug, leaf({3}), two, two).backward());
  {
    const CheckpointDebugGuard off(false);
    EXPECT_EQ(text(changing(debug, leaf({3}), forward, again)).find("ERROR:"), std::string::npos);
  }
}

TEST(CheckpointErrors, OptionsThatContradictEachOther) {
  const auto with_context = CheckpointOptions().context_fn([] { return CheckpointContexts{}; });
  const Tensor x = leaf({3});
  EXPECT_TRUE(throws<ValueError>("debug=True is incompatible with non-default context_fn", [&] {
    checkpoint(CheckpointOptions(with_context).debug(true), two, x);
  }));
  for (const auto& options : {with_context, CheckpointOptions().debug(true),
                              CheckpointOptions().choices({SavedChoice::kKeep})}) {
    EXPECT_TRUE(throws<ValueError>("is only supported when", [&] {
      checkpoint(CheckpointOptions(options).reentrant(true), two, x);
    }));
  }
}

TEST(CheckpointErrors, ATensorArgumentThatIsWrittenBeforeItIsNeeded) {
  const Tensor x = leaf({3});
  const Tensor in = x * 1;
  const Tensor y = checkpoint(two, in).sum();
  in.mul_(2);
  EXPECT_TRUE(throws<std::exception>("modified by an inplace operation", [&] { y.backward(); }));
}

// (a) An error in the function ends the checkpoint: what is saved afterwards is not its.
TEST(CheckpointFaults, NothingIsSavedInACheckpointThatThrew) {
  const Tensor x = leaf({3});
  const Since since;
  Tensor y;
  try {
    checkpoint([](const Tensor& in) -> Tensor { throw std::domain_error(in.exp().toString()); }, x);
    FAIL();
  } catch (const std::domain_error&) {
    EXPECT_EQ(since.saved(), 1);
    y = x.exp().sin();
    EXPECT_FALSE(is_checkpointing());
  }
  EXPECT_EQ(since.saved(), 1);
  EXPECT_EQ(since.alive(), 0);
}

// (b) A recompute that threw leaves nothing behind that a retry would take for its own.
TEST(CheckpointFaults, ARetryAfterAnErrorInARecomputeStartsAfresh) {
  const Tensor x = leaf({3});
  bool fail = true;
  const Tensor y = checkpoint(
                       [&fail](const Tensor& in) {
                         const Tensor middle = in.exp();
                         if (is_recomputing() && fail) throw std::domain_error("mine");
                         return middle.sin().exp();
                       },
                       x)
                       .sum();
  const GraphExecGroup group;
  const GraphExecGroup::Guard guard(group);
  EXPECT_TRUE(throws<std::domain_error>("mine", [&] { y.backward({}, true); }));
  fail = false;
  y.backward();
  EXPECT_TRUE(same(x.grad(), torch::autograd::grad({x.exp().sin().exp().sum()}, {x})[0]));
}

// (c) The same error comes again.
TEST(CheckpointFaults, AMismatchIsAMismatchEveryTime) {
  const Tensor y = changing({}, leaf({3}), three, two);
  const GraphExecGroup group;
  const GraphExecGroup::Guard guard(group);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(throws("A different number of tensors", [&] { y.backward({}, true); }));
  }
}

// (d) What a backward recomputed and did not unpack goes with it.
TEST(CheckpointFaults, RetainedBackwardsLeaveNothing) {
  std::vector<WeakStorage> made;
  const Tensor x = leaf({3});
  const auto [a, b] = checkpoint(
      [&made](const Tensor& in) {
        const Tensor unused = in.exp();
        if (is_recomputing()) made.push_back(weak(unused));
        return std::make_pair(unused, in.sin().sin());
      },
      x);
  for (int i = 0; i < 5; ++i) b.sum().backward({}, true);
  EXPECT_EQ(made.size(), 5u);
  for (const WeakStorage& storage : made) EXPECT_TRUE(storage.expired());
}

// (e) Noticed even where nothing is saved afterwards.
TEST(CheckpointFaults, AFunctionThatSwallowsTheEndOfItsRecomputeIsAnError) {
  const Tensor y = checkpoint(
      [](const Tensor& in) {
        try {
          return in.exp().sin();
        } catch (const std::exception&) {
          return in;
        }
      },
      leaf({3}));
  EXPECT_TRUE(throws("caught the exception that ends its recompute", [&] { y.sum().backward(); }));
}

// (g) A recompute context is made for each recompute.
TEST(CheckpointFaults, ContextsAreMadeForEachRun) {
  std::string story;
  const auto scope = [&story](char begin) {
    return [&story, begin] {
      story += begin;
      return CheckpointScope(nullptr, [&story](void*) { story += ')'; });
    };
  };
  const Tensor y = checkpoint(
                       CheckpointOptions().context_fn([&] {
                         story += 'm';
                         return CheckpointContexts{scope('f'), scope('r')};
                       }),
                       [&story](const Tensor& in) { return story += '(', two(in); }, leaf({3}))
                       .sum();
  EXPECT_EQ(story, "mf()");
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(story, "mf()r()r()");
}

}  // namespace
}  // namespace ferry
