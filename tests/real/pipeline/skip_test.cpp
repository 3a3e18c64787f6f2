// Skip tensors: with and without a pipeline, and what is refused.
#include <stdexcept>

#include "tests/real/api/message.h"
#include "tests/real/pipeline/rig.h"

namespace ferry {
namespace {

Layer pass() {
  return layer({}, {}, [](LayerImpl& self, const Tensor& x) { return x * self.w; });
}
Layer stashes(const std::string& name) {
  return layer({name}, {}, [name](LayerImpl& self, const Tensor& x) {
    self.put(name, x * self.w);
    return x * self.w;
  });
}
Layer pops(const std::string& name) {
  return layer({}, {name}, [name](LayerImpl& self, const Tensor& x) {
    return x * self.w + self.take(name) * x;
  });
}

void expect_as_plain(torch::nn::Sequential layers, const std::vector<std::int64_t>& balance,
                     const Pipe::Loss& loss_function = sum_of) {
  const Tensor expected = plain_step(layers, batch(8), batch(8), 4, loss_function);
  const Tensors before = gradients(layers);
  for_all_options(balance, 4, [&](const PipeOptions& options) {
    Pipe pipe(layers, options);
    layers->zero_grad();
    EXPECT_TRUE(same({pipe.step(batch(8), batch(8), loss_function)}, {expected}));
    EXPECT_TRUE(same(gradients(layers), before));
    layers->zero_grad();
    const auto outputs = pipe.forward(batch(8)).chunk(4);
    Tensor loss;
    for (std::size_t i = 0; i < 4; ++i) {
      const Tensor each = loss_function(outputs[i], batch(8).chunk(4)[i]) / 4;
      loss = loss.defined() ? loss + each : each;
    }
    loss.backward({}, /*retain_graph=*/true);
    EXPECT_TRUE(same(gradients(layers), before));
    loss.backward();
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Tensor twice = before[i].defined() ? before[i] * 2 : Tensor();
      EXPECT_TRUE(same({gradients(layers)[i]}, {twice}));
    }
  });
}

TEST(SkipTest, AcrossStagesWithinOneAndNested) {
  torch::nn::Sequential layers(stashes("a"), stashes("b"), stashes("c"), pops("c"), pass(),
                               pops("b"), pops("a"));
  expect_as_plain(layers, {1, 2, 2, 2});
  expect_as_plain(layers, {2, 1, 1, 3});
  expect_as_plain(layers, {1, 1, 2, 3});
}

// pytorch#110775: a popped tensor that the loss does not depend on, or that loses its gradient.
TEST(SkipTest, PoppedWithoutAGradient) {
  const auto unused = [] {
    return layer({}, {"a"}, [](LayerImpl& self, const Tensor& x) {
      self.take("a");
      return x * self.w;
    });
  };
  const auto cut = [] {
    return layer({}, {"a"}, [](LayerImpl& self, const Tensor& x) {
      return x * self.w + self.take("a").detach();
    });
  };
  expect_as_plain(torch::nn::Sequential(stashes("a"), pass(), unused(), pass()), {1, 1, 1, 1});
  expect_as_plain(torch::nn::Sequential(stashes("a"), pass(), cut(), pass()), {1, 1, 1, 1});
  expect_as_plain(torch::nn::Sequential(stashes("a"), pass(), pass(), unused()), {1, 1, 1, 1});
}

TEST(SkipTest, IntegersAndNothing) {
  const auto stash_both = layer({"none", "whole"}, {}, [](LayerImpl& self, const Tensor& x) {
    self.put("none", {});
    self.put("whole", torch::arange(3));
    return x * self.w;
  });
  const auto pop_both = layer({}, {"none", "whole"}, [](LayerImpl& self, const Tensor& x) {
    EXPECT_FALSE(self.take("none").defined());
    const Tensor whole = self.take("whole");
    EXPECT_EQ(whole.scalar_type(), torch::kLong);
    return x * self.w + whole;
  });
  expect_as_plain(torch::nn::Sequential(stash_both, pass(), pop_both, pass()), {1, 1, 1, 1});
}

// How stages share a weight: its gradients are added in one backward.
TEST(SkipTest, AParameter) {
  const auto tied = layer({"w"}, {}, [](LayerImpl& self, const Tensor& x) {
    self.put("w", self.w);
    return x * self.w;
  });
  const auto user = layer(
      {}, {"w"}, [](LayerImpl& self, const Tensor& x) { return x * self.w + self.take("w"); });
  expect_as_plain(torch::nn::Sequential(tied, pass(), user, pass()), {1, 1, 1, 1});
}

// A pop inside a checkpoint inside a stage: it finds its tensor each time that it runs again, also
// where the recompute ends early and where backward comes twice.
TEST(SkipTest, InCheckpointsThatStopEarly) {
  for (const bool early : {true, false}) {
    const auto inside = layer({}, {"a"}, [=](LayerImpl& self, const Tensor& x) {
      return ferry::checkpoint(
          CheckpointOptions().early_stop(early),
          [&self](const Tensor& y) {
            const Tensor popped = self.take("a");
            return (y * self.w + popped * y).clone();
          },
          x);
    });
    torch::nn::Sequential layers(stashes("a"), pass(), inside, pass());
    expect_as_plain(layers, {1, 1, 1, 1});
  }
}

// The function would double it once more, and nobody would know.
TEST(SkipTest, ACheckpointThatWritesWhatItPoppedIsRefused) {
  for (const bool reentrant : {false, true}) {
    torch::nn::Sequential layers(
        stashes("a"), layer({}, {"a"}, [reentrant](LayerImpl& self, const Tensor& x) {
          return ferry::checkpoint(
              CheckpointOptions().reentrant(reentrant),
              [&self](const Tensor& y) { return y * self.w + self.take("a").mul_(2) * self.w; }, x);
        }));
    EXPECT_NE(message([&] {
                layers->forward(batch(2)).sum().backward();
              }).find("modified by an inplace operation"),
              std::string::npos);
  }
}

TEST(SkipTest, WithoutAPipeline) {
  torch::nn::Sequential layers(stashes("a"), pass(), pops("a"));
  const Tensor x = batch(2).requires_grad_();
  layers->forward(x).sum().backward();
  EXPECT_TRUE(same({x.grad()}, {8 + 16 * x.detach()}));
  stash("b", x);
  EXPECT_TRUE(pop("b").is_same(x));
  EXPECT_EQ(message([] { pop("b"); }), "'b' is popped, but nothing is stashed under that name");
  const Namespace space;
  stash("b", x, space);
  EXPECT_THROW(pop("b"), SkipError);
  EXPECT_TRUE(pop("b", space).is_same(x));
}

TEST(SkipTest, NamespacesKeepLayersOfOneClassApart) {
  Layer first = stashes("a"), second = stashes("a");
  Layer inner = pops("a"), outer = pops("a");
  torch::nn::Sequential layers(first, second, inner, outer);
  EXPECT_THROW(verify_skippables(layers), SkipError);
  const Namespace around, within;
  for (Layer each : {first, outer}) each->isolate(around);
  for (Layer each : {second, inner}) each->isolate(within, {"a"});
  verify_skippables(layers);
  expect_as_plain(layers, {1, 1, 1, 1});
}

TEST(SkipTest, DeclarationsThatDoNotFit) {
  const auto refused = [](torch::nn::Sequential layers) {
    const std::string text = message([&] { verify_skippables(layers); });
    EXPECT_EQ(message([&] {
                Pipe(layers, PipeOptions().balance({static_cast<std::int64_t>(layers->size())}));
              }),
              text);
    return text.substr(text.find('*'));
  };
  EXPECT_EQ(refused(torch::nn::Sequential(stashes("a"))),
            "* no module declared 'a' as poppable but stashed");
  EXPECT_EQ(refused(torch::nn::Sequential(pops("a"))),
            "* '0' declared 'a' as poppable but it was not stashed");
  EXPECT_EQ(refused(torch::nn::Sequential(stashes("a"), stashes("a"), pops("a"))),
            "* '1' redeclared 'a' as stashable but not isolated by namespace");
}

TEST(SkipTest, ALayerThatDoesNotDoWhatItDeclared) {
  const auto runs = [](const Layer& first, const Layer& second) {
    Pipe pipe{torch::nn::Sequential(first, second), PipeOptions().balance({1, 1})};
    return message([&] { pipe.step(batch(2), batch(2), sum_of); });
  };
  const auto lazy_stash = layer({"a", "b"}, {}, [](LayerImpl&, const Tensor& x) { return x; });
  const auto pops_both = layer({}, {"a", "b"}, [](LayerImpl& self, const Tensor& x) {
    return x + self.take("a") + self.take("b");
  });
  EXPECT_EQ(runs(lazy_stash, pops_both), "'a', 'b' must be stashed but have not");
  const auto lazy_pop = layer({}, {"a"}, [](LayerImpl&, const Tensor& x) { return x; });
  EXPECT_EQ(runs(stashes("a"), lazy_pop), "'a' must be popped but have not");
  const auto secret = [](bool stashing, bool free) {
    return layer({}, {}, [=](LayerImpl& self, const Tensor& x) {
      if (stashing) free ? ferry::stash("s", x) : self.put("s", x);
      return stashing ? x : free ? ferry::pop("s") : self.take("s");
    });
  };
  for (const bool free : {true, false}) {
    EXPECT_EQ(runs(secret(true, free), pass()), "'s' has not been declared as stashable");
    EXPECT_EQ(runs(secret(false, free), pass()), "'s' has not been declared as poppable");
  }
}

}  // namespace
}  // namespace ferry
