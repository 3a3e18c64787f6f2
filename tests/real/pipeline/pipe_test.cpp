// What a pipeline computes is what the layers compute one after the other.
#include <ATen/autocast_mode.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "ferry/offload.h"
#include "tests/real/api/message.h"
#include "tests/real/pipeline/rig.h"

namespace ferry {
namespace {

torch::nn::Sequential scales(std::int64_t count, const std::function<void()>& seen = {}) {
  torch::nn::Sequential layers;
  for (std::int64_t i = 0; i < count; ++i) layers->push_back(Scale(i, seen));
  return layers;
}

TEST(PipeTest, AStepIsALoopOverItsMicroBatches) {
  for_all_options({1, 2, 1, 1}, 4, [](const PipeOptions& options) {
    auto layers = scales(5);
    const Tensor expected = plain_step(layers, batch(8), batch(8), 4);
    const Tensors before = gradients(layers);
    layers->zero_grad();
    Pipe pipe(layers, options);
    const Tensor loss = pipe.step(batch(8), batch(8), sum_of);
    EXPECT_TRUE(same({loss}, {expected}));
    EXPECT_TRUE(same(gradients(layers), before));
    EXPECT_FALSE(loss.requires_grad());
    pipe.step(batch(8), batch(8), sum_of);  // accumulates, as any backward does
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(same({gradients(layers)[i]}, {before[i] * 2}));
    }
  });
}

TEST(PipeTest, ForwardIsTheLayersAndItsBackwardTheirs) {
  for (const CheckpointMode mode : kModes) {
    for (const std::int64_t microbatches : {1, 3, 8, 20}) {
      SCOPED_TRACE(std::string(name(mode)) + std::to_string(microbatches));
      auto layers = scales(4);
      Tensor x = batch(8).requires_grad_();
      const Tensor y = layers->forward(x);
      (y * batch(8)).sum().backward();
      const Tensors expected = gradients(layers);
      const Tensor expected_x = x.grad().clone();
      layers->zero_grad();
      x.mutable_grad() = Tensor();
      Pipe pipe(layers,
                PipeOptions().balance({1, 1, 2}).microbatches(microbatches).checkpoint(mode));
      const Tensor out = pipe.forward(x);
      EXPECT_TRUE(same({out}, {y}));
      (out * batch(8)).sum().backward();
      EXPECT_TRUE(same(gradients(layers), expected));
      EXPECT_TRUE(same({x.grad()}, {expected_x}));
    }
  }
}

TEST(PipeTest, SeveralBackwardsOfOneForward) {
  for (const CheckpointMode mode : kModes) {
    auto layers = scales(3);
    Pipe pipe(layers, PipeOptions().balance({1, 1, 1}).microbatches(2).checkpoint(mode));
    const Tensor loss = pipe.forward(batch(4)).sum();
    loss.backward({}, /*retain_graph=*/true);
    const Tensors once = gradients(layers);
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    for (std::size_t i = 0; i < once.size(); ++i) {
      EXPECT_TRUE(same({gradients(layers)[i]}, {once[i] * 3}));
    }
  }
}

// Of a step, and of forward with a backward of one's own. Returns what the loop leaves.
Tensors expect_gradients_of_the_loop(torch::nn::Sequential layers, const PipeOptions& options) {
  const Tensor expected = plain_step(layers, batch(8), batch(8), 4);
  const Tensors before = gradients(layers);
  layers->zero_grad();
  Pipe pipe(layers, options);
  EXPECT_TRUE(same({pipe.step(batch(8), batch(8), sum_of)}, {expected}));
  EXPECT_TRUE(same(gradients(layers), before));
  layers->zero_grad();
  (pipe.forward(batch(8)) * batch(8) / 4).sum().backward();
  EXPECT_TRUE(same(gradients(layers), before));
  return before;
}

// As where a model is tuned: what comes before the tuned layers has no gradients at all.
TEST(PipeTest, FrozenLayersStay) {
  for_all_options({1, 2, 1, 1}, 4, [](const PipeOptions& options) {
    auto layers = scales(5);
    for (std::size_t i = 0; i < 3; ++i) {
      for (Tensor& parameter : layers[i]->parameters()) parameter.set_requires_grad(false);
    }
    expect_gradients_of_the_loop(layers, options);
  });
}

// Between the stash and the pop a layer stops the gradient of what it gets: that of the skip tensor
// comes all the same, and what has none without a pipeline has none in it.
TEST(PipeTest, SkipTensorsGoPastAStageThatStopsGradients) {
  for (const std::size_t stops : {1, 2, 3}) {
    for_all_options({1, 1, 1, 1}, 4, [stops](const PipeOptions& options) {
      torch::nn::Sequential layers;
      for (std::size_t i = 0; i < 4; ++i) {
        std::vector<std::string> stashes, pops;
        if (i == 0) stashes = {"skip"};
        if (i == 3) pops = {"skip"};
        layers->push_back(layer(stashes, pops, [i, stops](LayerImpl& self, const Tensor& x) {
          const Tensor y = (i == stops ? x.detach() : x) * self.w;
          if (i == 0) self.put("skip", y);
          return i == 3 ? y + self.take("skip") : y;
        }));
      }
      const Tensors of_loop = expect_gradients_of_the_loop(layers, options);
      EXPECT_TRUE(of_loop[0].defined());
      EXPECT_EQ(of_loop[1].defined(), stops == 1);
    });
  }
}

TEST(PipeTest, ABackwardOfABackwardIsRefused) {
  auto layers = scales(2);
  Pipe pipe(layers, PipeOptions().balance({1, 1}).checkpoint(CheckpointMode::kNever));
  Tensor x = batch(2).requires_grad_();
  const Tensor loss = pipe.forward(x).square().sum();
  EXPECT_NE(message([&] {
              torch::autograd::grad({loss}, {x}, {}, true, true);
            }).find("the backward of a pipeline has no graph"),
            std::string::npos);
}

// Stage by stage a thread: each layer's is its own, and none the caller's.
TEST(PipeTest, EachStageHasAThread) {
  std::mutex mutex;
  std::vector<std::set<std::thread::id>> threads(3);
  torch::nn::Sequential layers;
  for (std::size_t i = 0; i < 3; ++i) {
    layers->push_back(Scale(0, [&, i] {
      const std::lock_guard lock(mutex);
      threads[i].insert(std::this_thread::get_id());
    }));
  }
  Pipe pipe(layers, PipeOptions().balance({1, 1, 1}).microbatches(3));
  pipe.step(batch(6), batch(6), sum_of);
  pipe.step(batch(6), batch(6), sum_of);
  std::set<std::thread::id> all = {std::this_thread::get_id()};
  for (const auto& each : threads) {
    EXPECT_EQ(each.size(), 1u);
    all.insert(each.begin(), each.end());
  }
  EXPECT_EQ(all.size(), 4u);
}

TEST(PipeTest, StagesSeeTheCallersModes) {
  struct Seen {
    bool grad, checkpointing, recomputing, autocast;
    bool operator<(const Seen& other) const { return all() < other.all(); }
    bool operator==(const Seen& other) const { return all() == other.all(); }
    std::tuple<bool, bool, bool, bool> all() const {
      return {grad, checkpointing, recomputing, autocast};
    }
  };
  std::mutex mutex;
  std::set<Seen> seen;
  auto layers = scales(2, [&] {
    const std::lock_guard lock(mutex);
    seen.insert({torch::GradMode::is_enabled(), is_checkpointing(), is_recomputing(),
                 at::autocast::is_autocast_enabled(at::kCPU)});
  });
  Pipe pipe(layers,
            PipeOptions().balance({1, 1}).microbatches(2).checkpoint(CheckpointMode::kAlways));
  const std::set<Seen> twice = {{false, true, false, false}, {true, false, true, false}};
  pipe.step(batch(4), batch(4), sum_of);
  EXPECT_EQ(std::exchange(seen, {}), twice);
  pipe.forward(batch(4)).sum().backward();
  EXPECT_EQ(std::exchange(seen, {}), twice);
  {
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE(pipe.forward(batch(4)).requires_grad());
    EXPECT_EQ(std::exchange(seen, {}), (std::set<Seen>{Seen{false, false, false, false}}));
    EXPECT_EQ(message([&] { pipe.step(batch(4), batch(4), sum_of); }),
              "ferry::Pipe: a step needs grad mode");
  }
  layers->eval();
  at::autocast::set_autocast_enabled(at::kCPU, true);
  pipe.forward(batch(4)).sum().backward();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(seen, (std::set<Seen>{Seen{true, false, false, true}}));
}

// The first failed stage's error comes; the step after it is as if nothing had been.
TEST(PipeTest, AnErrorInAStage) {
  for_all_options({1, 1, 1, 1}, 4, [](const PipeOptions& options) {
    std::atomic<int> failing = -1;
    std::atomic<int> calls = 0;
    torch::nn::Sequential layers;
    for (int i = 0; i < 4; ++i) {
      layers->push_back(Scale(i, [&, i] {
        if (i == failing && ++calls == 2) throw std::out_of_range("stage " + std::to_string(i));
      }));
    }
    plain_step(layers, batch(8), batch(8), 4);
    const Tensors expected = gradients(layers);
    Pipe pipe(layers, options);
    for (int i = 0; i < 4; ++i) {
      failing = i;
      calls = 0;
      EXPECT_EQ(message([&] { pipe.step(batch(8), batch(8), sum_of); }),
                "stage " + std::to_string(i));
      calls = 0;
      EXPECT_THROW(pipe.forward(batch(8)).sum().backward(), std::out_of_range);
    }
    failing = -1;
    layers->zero_grad();
    pipe.step(batch(8), batch(8), sum_of);
    EXPECT_TRUE(same(gradients(layers), expected));
  });
}

// Of what passes between the stages, integers and tensors without a gradient among them.
struct ManyImpl : torch::nn::Module {
  ManyImpl() { w = register_parameter("w", torch::full({}, 3.0, torch::kFloat64)); }
  Tensors forward(Tensors x) {
    // An integer first, one without a gradient in the middle, and none last.
    return {x.at(0) + 1, x.at(1) * w, x.at(2).detach() * 2, x.at(1) + x.at(3) * w, {}};
  }
  Tensor w;
};
TORCH_MODULE(Many);
struct FewerImpl : torch::nn::Module {
  Tensors forward(Tensors x) {
    EXPECT_FALSE(x.at(4).defined());
    EXPECT_EQ(x.at(0).scalar_type(), torch::kLong);
    return {x[0], x[1], x[2], x[3]};
  }
};
TORCH_MODULE(Fewer);

TEST(PipeTest, ListsOfTensorsOfWhichSomeHaveNoGradient) {
  for_all_options({1, 1, 1, 1}, 2, [](const PipeOptions& options) {
    torch::nn::Sequential layers{Many(), Fewer(), Many(), Fewer()};
    const Tensors inputs = {torch::arange(4), batch(4), batch(4), batch(4) + 1};
    const auto loss = [](const Tensors& y, const Tensors& target) {
      return (y.at(1) * target.at(0) + y.at(3)).sum() + y.at(0).sum();
    };
    const Tensors y = layers->forward<Tensors>(inputs);
    (loss(y, {batch(4)}) / 2).backward();
    const Tensors expected = gradients(layers);
    layers->zero_grad();
    Pipe pipe(layers, options);
    pipe.step(inputs, Tensors{batch(4)}, loss);
    EXPECT_TRUE(same(gradients(layers), expected));
    layers->zero_grad();
    const Tensors out = pipe.forward(inputs);
    EXPECT_TRUE(same(out, y));
    (loss(out, {batch(4)}) / 2).backward();
    EXPECT_TRUE(same(gradients(layers), expected));
  });
}

// What it runs again on would be something else.
TEST(PipeTest, AStageThatWritesItsInputIsRefusedWhereItRunsAgain) {
  torch::nn::Sequential layers(
      layer({}, {}, [](LayerImpl& self, Tensor x) { return x.mul_(2) * self.w; }), Scale(1));
  Pipe pipe(layers, PipeOptions().balance({1, 1}).checkpoint(CheckpointMode::kAlways));
  const std::string text = "stage 0 writes in place its input, and could not run again on it";
  EXPECT_EQ(message([&] { pipe.step(batch(2), batch(2), sum_of); }), text);
  EXPECT_EQ(message([&] { pipe.forward(batch(2)); }), text);
  plain_step(layers, batch(2), batch(2), 1);
  const Tensors expected = gradients(layers);
  layers->zero_grad();
  Pipe never(layers, PipeOptions().balance({1, 1}).checkpoint(CheckpointMode::kNever));
  never.step(batch(2), batch(2), sum_of);
  EXPECT_TRUE(same(gradients(layers), expected));
}

// What is stashed leaves as the stage has it in the end: an activation is often applied in place.
TEST(PipeTest, AStageMayWriteWhatItStashed) {
  for_all_options({2, 1, 1, 1}, 4, [](const PipeOptions& options) {
    torch::nn::Sequential layers(
        layer({"tensor", "view"}, {},
              [](LayerImpl& self, const Tensor& x) {
                Tensor y = x * self.w;
                self.put("tensor", y);
                self.put("view", y.view({-1}));
                y.mul_(3);
                return y;
              }),
        layer({}, {}, [](LayerImpl& self, Tensor x) { return torch::relu_(x) * self.w; }), Scale(1),
        layer({}, {"view"},
              [](LayerImpl& self, const Tensor& x) {
                return x * self.w + self.take("view").view_as(x);
              }),
        layer({}, {"tensor"},
              [](LayerImpl& self, const Tensor& x) { return x * self.w + self.take("tensor"); }));
    expect_gradients_of_the_loop(layers, options);
  });
}

// What goes on and is stashed too has two ways, which know nothing of each other.
TEST(PipeTest, AStageThatWritesWhatOthersHaveIsRefused) {
  const auto stash = [] {
    return layer({"skip"}, {}, [](LayerImpl& self, const Tensor& x) {
      const Tensor y = x * self.w;
      self.put("skip", y);
      return y;
    });
  };
  const auto pop = [](bool writes) {
    return layer({}, {"skip"}, [writes](LayerImpl& self, const Tensor& x) {
      Tensor skip = self.take("skip");
      if (writes) skip.mul_(2);
      return x * self.w + skip;
    });
  };
  const auto relu = [] {
    return layer({}, {}, [](LayerImpl& self, Tensor x) { return torch::relu_(x) * self.w; });
  };
  using torch::nn::Sequential;
  const auto forward = [](Sequential layers) {
    const auto stages = static_cast<std::int64_t>(layers->size());
    Pipe pipe(layers, PipeOptions()
                          .balance(std::vector<std::int64_t>(stages, 1))
                          .checkpoint(CheckpointMode::kNever));
    pipe.forward(batch(2));
  };
  const std::string clone = " as well: expected a clone of the one or the other";
  const std::string skip = "whose bytes are those of the skip tensor 'skip'" + clone;
  EXPECT_EQ(message([&] { forward(Sequential(stash(), relu(), pop(false))); }),
            "stage 1 writes in place its input, " + skip);
  EXPECT_EQ(message([&] { forward(Sequential(stash(), pop(true))); }),
            "stage 1 writes in place its input, " + skip);
  EXPECT_NO_THROW(forward(Sequential(stash(), Scale(1), pop(true)))) << "who pops it has it alone";
}

struct TwiceImpl : torch::nn::Module {
  Tensors forward(const Tensor& x) {
    const Tensor y = x + 1;
    return {y, y.view({-1})};
  }
};
TORCH_MODULE(Twice);
struct FirstWrittenImpl : torch::nn::Module {
  Tensor forward(Tensors x) { return x.at(0).mul_(2) + x.at(1).view_as(x[0]); }
};
TORCH_MODULE(FirstWritten);

TEST(PipeTest, AStageThatWritesOneOfTwoViewsIsRefused) {
  Pipe pipe(torch::nn::Sequential(Twice(), FirstWritten()),
            PipeOptions().balance({1, 1}).checkpoint(CheckpointMode::kNever));
  EXPECT_EQ(message([&] { pipe.forward(batch(2)); }),
            "stage 1 writes in place its input, whose bytes are those of another of its inputs as "
            "well: expected a clone of the one or the other");
}

// Its micro-batches are views of one batch, and no stage takes another's write for its own.
TEST(PipeTest, AStepsFirstStageMayWriteTheBatch) {
  torch::nn::Sequential layers(layer({"skip"}, {},
                                     [](LayerImpl& self, Tensor x) {
                                       self.put("skip", x.mul_(2));
                                       return x;
                                     }),
                               Scale(1), layer({}, {"skip"}, [](LayerImpl& self, const Tensor& x) {
                                 return x * self.w * self.take("skip");
                               }));
  plain_step(layers, batch(8), batch(8), 4);
  const Tensors expected = gradients(layers);
  layers->zero_grad();
  Pipe pipe(layers,
            PipeOptions().balance({1, 1, 1}).microbatches(4).checkpoint(CheckpointMode::kNever));
  const Tensor x = batch(8);
  const auto before = x._version();
  pipe.step(x, batch(8), sum_of);
  EXPECT_TRUE(same(gradients(layers), expected));
  EXPECT_TRUE(same({x}, {batch(8) * 2}));
  EXPECT_GT(x._version(), before) << "whoever saved the batch is told";
}

TEST(PipeTest, ABatchThatIsWrittenBeforeItsBackwardIsRefused) {
  for (const CheckpointMode mode : kModes) {
    Pipe pipe(scales(2), PipeOptions().balance({1, 1}).microbatches(2).checkpoint(mode));
    Tensor x = batch(4);
    const Tensor y = pipe.forward(x);
    x.mul_(2);
    EXPECT_NE(message([&] { y.sum().backward(); }).find("modified by an inplace operation"),
              std::string::npos)
        << name(mode);
  }
}

TEST(PipeTest, NothingIsLeftAfterBackward) {
  for_all_options({1, 1, 1, 1}, 4, [](const PipeOptions& options) {
    std::mutex mutex;
    std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> made;
    torch::nn::Sequential layers;
    for (int i = 0; i < 4; ++i) {
      layers->push_back(
          layer(i == 0 ? std::vector<std::string>{"skip"} : std::vector<std::string>{},
                i == 3 ? std::vector<std::string>{"skip"} : std::vector<std::string>{},
                [&, i](LayerImpl& self, Tensor x) {
                  x = x * self.w;
                  if (i == 0) self.put("skip", x);
                  if (i == 3) x = x * self.take("skip");
                  const std::lock_guard lock(mutex);
                  made.push_back(x.storage().getWeakStorageImpl());
                  return x;
                }));
    }
    const auto alive = [&] {
      return std::ranges::count_if(made, [](const auto& weak) { return weak.use_count() > 0; });
    };
    Pipe pipe(layers, options);
    pipe.step(batch(8), batch(8), sum_of);
    EXPECT_GE(made.size(), 16u);
    EXPECT_EQ(alive(), 0);
    Tensor loss = pipe.forward(batch(8)).sum();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    EXPECT_EQ(alive(), 0) << "the loss, and with it the graph, is kept";
    loss = pipe.forward(batch(8)).sum();
    EXPECT_GT(alive(), 0);
    loss = Tensor();  // dropped without a backward
    EXPECT_EQ(alive(), 0);
  });
}

TEST(PipeTest, OffloadingInsideTheStages) {
  for_all_options({1, 1, 1, 1}, 4, [](const PipeOptions& options) {
    torch::nn::Sequential layers;
    for (int i = 0; i < 4; ++i) {
      layers->push_back(
          layer({}, {}, [](LayerImpl& self, const Tensor& x) { return (x * self.w).tanh(); }));
    }
    const Tensor expected = plain_step(layers, batch(8), batch(8), 4);
    const Tensors before = gradients(layers);
    Offload offload(OffloadOptions().min_bytes(0).window(256).prefetch(256));
    offload.exempt(*layers);
    Pipe pipe(layers, options);
    for (int again = 0; again < 3; ++again) {
      layers->zero_grad();
      {
        const OffloadGuard guard(offload);
        EXPECT_TRUE(same({pipe.step(batch(8), batch(8), sum_of)}, {expected}));
      }
      EXPECT_TRUE(same(gradients(layers), before));
      layers->zero_grad();
      {
        const OffloadGuard guard(offload);
        (pipe.forward(batch(8)) * batch(8)).sum().div(4).backward();
      }
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_TRUE(gradients(layers)[i].allclose(before[i]))
            << "summed from the last to the first";
      }
    }
    EXPECT_GT(offload.statistics().offloaded_bytes, 0);
    EXPECT_TRUE(offload.empty());
  });
}

TEST(PipeTest, OneThreadAfterTheOtherMayStep) {
  auto layers = scales(2);
  Pipe pipe(layers, PipeOptions().balance({1, 1}).microbatches(2));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      // With a graph ThreadSanitizer sees LibTorch free a node, and not the reference counts.
      const torch::NoGradGuard no_grad;
      pipe.forward(batch(4));
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace ferry
