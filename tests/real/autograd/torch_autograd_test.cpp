#include "real/autograd/torch_autograd.h"

#include <ATen/ThreadLocalState.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ferry::real {
namespace {

// A node that runs what a test says in backward.
struct Probe : torch::autograd::Function<Probe> {
  using Body = std::function<void()>;
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const Body* body) {
    context->saved_data["body"] = reinterpret_cast<std::int64_t>(body);
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    (*reinterpret_cast<const Body*>(context->saved_data["body"].toInt()))();
    return {gradients[0] * 2, at::Tensor()};
  }
};

at::Tensor leaf() { return torch::ones({4}, torch::requires_grad()); }

class TorchAutogradTest : public ::testing::Test {
 protected:
  TorchAutograd autograd;
};

TEST_F(TorchAutogradTest, OutsideABackwardThereIsNoTaskAndNoNode) {
  EXPECT_EQ(autograd.graph_task(), GraphTaskId::kNone);
  EXPECT_EQ(autograd.node(), NodeId::kNone);
  EXPECT_ANY_THROW(autograd.after_task([] {}));
}

TEST_F(TorchAutogradTest, EachBackwardIsATaskOfItsOwn) {
  std::vector<GraphTaskId> tasks;
  const Probe::Body body = [&] { tasks.push_back(autograd.graph_task()); };
  for (int i = 0; i < 2; ++i) Probe::apply(Probe::apply(leaf(), &body), &body).sum().backward();
  ASSERT_EQ(tasks.size(), 4u);
  EXPECT_NE(tasks[0], GraphTaskId::kNone);
  EXPECT_EQ(tasks[0], tasks[1]);
  EXPECT_NE(tasks[1], tasks[2]);
  EXPECT_EQ(autograd.graph_task(), GraphTaskId::kNone);
}

TEST_F(TorchAutogradTest, ANodeKeepsItsNumberWhileItRunsAndSharesItWithNone) {
  std::vector<NodeId> nodes;
  const Probe::Body body = [&] {
    nodes.push_back(autograd.node());
    nodes.push_back(autograd.node());
  };
  Probe::apply(Probe::apply(leaf(), &body), &body).sum().backward();
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_NE(nodes[0], NodeId::kNone);
  EXPECT_EQ(nodes[0], nodes[1]);
  EXPECT_EQ(nodes[2], nodes[3]);
  EXPECT_NE(nodes[1], nodes[2]);
}

TEST_F(TorchAutogradTest, ARetainedNodeIsAnotherInTheNextTask) {
  std::vector<NodeId> nodes;
  const Probe::Body body = [&] { nodes.push_back(autograd.node()); };
  const auto y = Probe::apply(leaf(), &body).sum();
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_NE(nodes[0], nodes[1]);
}

TEST_F(TorchAutogradTest, ATaskWithinATaskIsTheInnerOne) {
  GraphTaskId outer = GraphTaskId::kNone, inner = outer, after = outer;
  const Probe::Body in = [&] { inner = autograd.graph_task(); };
  const Probe::Body out = [&] {
    outer = autograd.graph_task();
    const at::AutoGradMode grad(true);
    Probe::apply(leaf(), &in).sum().backward();
    after = autograd.graph_task();
  };
  Probe::apply(leaf(), &out).sum().backward();
  EXPECT_NE(inner, GraphTaskId::kNone);
  EXPECT_NE(inner, outer);
  EXPECT_EQ(after, outer);
}

TEST_F(TorchAutogradTest, ATasksEndIsToldAfterSuccess) {
  std::vector<std::string> story;
  const Probe::Body body = [&] {
    autograd.after_task([&] { story.push_back("end"); });
    story.push_back("node");
  };
  Probe::apply(Probe::apply(leaf(), &body), &body).sum().backward();
  EXPECT_EQ(story, (std::vector<std::string>{"node", "node", "end", "end"}));
}

TEST_F(TorchAutogradTest, ATasksEndIsToldAfterAFailureAndTheErrorKeepsItsType) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  int ends = 0;
  const Probe::Body body = [&] {
    autograd.after_task([&] { ++ends; });
    throw Mine("boom");
  };
  const auto y = Probe::apply(leaf(), &body).sum();
  EXPECT_THROW(y.backward(), Mine);
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(autograd.graph_task(), GraphTaskId::kNone);
}

// LibTorch leaves what was ready in the thread's queue.
TEST_F(TorchAutogradTest, AFailedBackwardKeepsNothingAlive) {
  const Probe::Body fails = [] { throw std::runtime_error("boom"); };
  c10::weak_intrusive_ptr<c10::TensorImpl> input{c10::intrusive_ptr<c10::TensorImpl>()};
  {
    const auto x = leaf();
    const auto other = x.sin();  // whose node saves it
    input = c10::weak_intrusive_ptr(x.getIntrusivePtr());
    EXPECT_THROW((other + Probe::apply(x, &fails)).sum().backward(), std::runtime_error);
    EXPECT_FALSE(input.expired());
  }
  EXPECT_TRUE(input.expired());
}

TEST_F(TorchAutogradTest, ANestedTasksEndIsItsOwn) {
  std::vector<std::string> story;
  const Probe::Body in = [&] { autograd.after_task([&] { story.push_back("inner"); }); };
  const Probe::Body out = [&] {
    autograd.after_task([&] { story.push_back("outer"); });
    const at::AutoGradMode grad(true);
    Probe::apply(leaf(), &in).sum().backward();
    story.push_back("node");
  };
  Probe::apply(leaf(), &out).sum().backward();
  EXPECT_EQ(story, (std::vector<std::string>{"inner", "node", "outer"}));
}

TEST_F(TorchAutogradTest, AfterANodeRunsOnceThoughTheNodeIsKept) {
  int ends = 0;
  const Probe::Body body = [&] {
    autograd.after_node([&] { ++ends; });
    EXPECT_EQ(ends, 0);
  };
  const auto y = Probe::apply(leaf(), &body).sum();
  y.backward({}, /*retain_graph=*/true);
  EXPECT_EQ(ends, 1);
  ends = 0;
  y.backward();
  EXPECT_EQ(ends, 1);
}

TEST_F(TorchAutogradTest, AfterANodeRunsBeforeTheNextNode) {
  std::vector<std::string> story;
  const Probe::Body body = [&] {
    story.push_back("node");
    autograd.after_node([&] { story.push_back("after"); });
  };
  Probe::apply(Probe::apply(leaf(), &body), &body).sum().backward();
  EXPECT_EQ(story, (std::vector<std::string>{"node", "after", "node", "after"}));
}

TEST_F(TorchAutogradTest, WhatIsThrownAfterANodeFailsTheBackward) {
  const Probe::Body body = [&] { autograd.after_node([] { throw std::domain_error("late"); }); };
  const auto y = Probe::apply(leaf(), &body).sum();
  EXPECT_THROW(y.backward(), std::domain_error);
}

TEST_F(TorchAutogradTest, WhatAFailedNodeAskedForIsNotRunByTheNextTask) {
  int ends = 0;
  bool fail = true;
  const Probe::Body body = [&] {
    autograd.after_node([&] { ++ends; });
    if (fail) throw std::runtime_error("boom");
  };
  const auto y = Probe::apply(leaf(), &body).sum();
  EXPECT_THROW(y.backward({}, /*retain_graph=*/true), std::runtime_error);
  fail = false;
  y.backward();
  EXPECT_EQ(ends, 1);
}

TEST_F(TorchAutogradTest, WhatAFailedNodeAskedForIsDroppedWithItsTask) {
  const auto token = std::make_shared<int>(0);
  const Probe::Body body = [&] {
    autograd.after_node([token] {});
    throw std::runtime_error("boom");
  };
  const auto y = Probe::apply(leaf(), &body).sum();
  EXPECT_THROW(y.backward({}, /*retain_graph=*/true), std::runtime_error);
  EXPECT_EQ(token.use_count(), 1) << "the graph is kept";
}

// A chain of nested backwards that is deeper than the engine lets one thread recurse.
TEST_F(TorchAutogradTest, TasksNestDeeperThanTheEnginesRecursionLimit) {
  constexpr int kDepth = 150;
  int depth = 0, ends = 0;
  Probe::Body body;
  body = [&] {
    autograd.after_task([&] { ++ends; });
    if (++depth == kDepth) return;
    const at::AutoGradMode grad(true);
    Probe::apply(leaf(), &body).sum().backward();
  };
  Probe::apply(leaf(), &body).sum().backward();
  EXPECT_EQ(ends, kDepth);
}

struct Ignored final : Hooks<at::Tensor> {
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor&) override { return nullptr; }
};

TEST_F(TorchAutogradTest, TheHooksTravelWithLibTorchsThreadState) {
  const auto pair = std::make_shared<Ignored>();
  at::ThreadLocalState state;
  {
    const HooksGuard<TorchAutograd> guard(autograd, pair);
    state = at::ThreadLocalState();
  }
  EXPECT_EQ(innermost_pair(), nullptr);
  std::thread([&] {
    EXPECT_EQ(innermost_pair(), nullptr) << "a thread begins without";
    {
      const at::ThreadLocalStateGuard guard(state);
      EXPECT_EQ(innermost_pair(), pair);
      const NoHooksGuard<TorchAutograd> none(autograd);
      EXPECT_EQ(innermost_pair(), nullptr);
    }
    EXPECT_EQ(innermost_pair(), nullptr);
  }).join();
}

TEST_F(TorchAutogradTest, ABackwardCarriesTheHooksOfItsCaller) {
  const auto pair = std::make_shared<Ignored>();
  std::shared_ptr<Hooks<at::Tensor>> seen;
  const Probe::Body body = [&] { seen = innermost_pair(); };
  const auto y = Probe::apply(leaf(), &body).sum();
  y.backward({}, /*retain_graph=*/true);
  EXPECT_EQ(seen, nullptr);
  const HooksGuard<TorchAutograd> guard(autograd, pair);
  y.backward();
  EXPECT_EQ(seen, pair);
}

TEST_F(TorchAutogradTest, ThreadsHaveTasksOfTheirOwn) {
  std::vector<std::thread> threads;
  std::array<std::vector<GraphTaskId>, 4> tasks;
  for (auto& mine : tasks) {
    threads.emplace_back([&mine] {
      const Probe::Body body = [&] { mine.push_back(TorchAutograd().graph_task()); };
      for (int i = 0; i < 50; ++i) Probe::apply(leaf(), &body).sum().backward();
    });
  }
  for (auto& thread : threads) thread.join();
  std::set<GraphTaskId> all;
  for (const auto& mine : tasks) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 200u);
}

}  // namespace
}  // namespace ferry::real
