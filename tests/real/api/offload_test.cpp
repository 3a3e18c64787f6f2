#include "ferry/offload.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/kineto_file.h"
#include "formats/plan_file.h"
#include "formats/plan_options.h"
#include "real/api/device_offloaders.h"
#include "real/autograd/torch_autograd.h"
#include "tests/real/api/message.h"

namespace ferry {
namespace {

// Everything moves at once, and comes back when it is asked for.
OffloadOptions eager() {
  return OffloadOptions().min_bytes(1).window_tensors(1).prefetch(0).hold(0);
}

struct Net : torch::nn::Module {
  torch::nn::Linear in{nullptr}, out{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  Net() {
    torch::manual_seed(3);
    in = register_module("in", torch::nn::Linear(16, 32));
    norm = register_module("norm", torch::nn::BatchNorm1d(32));
    out = register_module("out", torch::nn::Linear(32, 4));
  }
  torch::Tensor loss(const torch::Tensor& x) {
    return (out(norm(in(x).tanh()).relu())).square().mean();
  }
};

std::vector<torch::Tensor> gradients(Net& net) {
  std::vector<torch::Tensor> found;
  for (auto& parameter : net.parameters()) found.push_back(parameter.grad().clone());
  net.zero_grad();
  return found;
}

torch::Tensor input() {
  torch::manual_seed(5);
  return torch::randn({8, 16});
}

class OffloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    net.loss(input()).backward();
    plain = gradients(net);
  }
  void expect_plain() {
    const auto ours = gradients(net);
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(ours[i].equal(plain[i]));
  }
  Net net;
  std::vector<torch::Tensor> plain;
};

TEST_F(OffloadTest, OneGuardAroundForwardAndBackward) {
  Offload offload(eager());
  offload.exempt(net);
  for (int step = 0; step < 3; ++step) {
    {
      const OffloadGuard guard(offload);
      net.loss(input()).backward();
    }
    expect_plain();
  }
  EXPECT_TRUE(offload.empty());
  EXPECT_GT(offload.statistics().offloaded_count, 0);
  EXPECT_GT(offload.statistics().reloaded_count, 0);
}

// The window holds all that moves until backward begins.
TEST_F(OffloadTest, WhatIsNeededMuchLaterLeavesWhenBackwardBegins) {
  const auto reloaded = [this](std::int64_t tensors) {
    const auto options = OffloadOptions().min_bytes(1).window(kUnlimited).prefetch(0);
    Offload offload(OffloadOptions(options).prefetch_tensors(tensors));
    offload.exempt(net);
    {
      const OffloadGuard guard(offload);
      net.loss(input()).backward();
    }
    expect_plain();
    EXPECT_TRUE(offload.empty());
    return offload.statistics().reloaded_count;
  };
  EXPECT_EQ(reloaded(kUnlimited), 0);
  EXPECT_GT(reloaded(1), 0);
}

// It fills the noise that it has saved, and its version does not say so: what was copied when it
// was saved had none of it.
TEST(Offload, TheNoiseOfRReluMovesWhenItIsDrawn) {
  const auto gradient = [] {
    torch::manual_seed(5);
    const torch::Tensor x = torch::randn({64}).set_requires_grad(true);
    torch::rrelu(x, 0.1, 0.9, /*training=*/true).sum().backward();
    return x.grad();
  };
  const torch::Tensor plain = gradient();
  Offload offload(eager());
  const OffloadGuard guard(offload);
  EXPECT_TRUE(gradient().equal(plain));
  EXPECT_GT(offload.statistics().reloaded_count, 0);
}

TEST_F(OffloadTest, AGuardByItsOptionsAlone) {
  OffloadGuard guard(eager());
  guard.offload().exempt(net);
  net.loss(input()).backward();
  EXPECT_GT(guard.offload().statistics().offloaded_bytes, 0);
  expect_plain();
}

TEST_F(OffloadTest, ParametersAndBuffersAreKept) {
  const auto offloaded = [&](bool exempt) {
    Offload offload(eager());
    if (exempt) offload.exempt(net);
    const OffloadGuard guard(offload);
    net.loss(input()).backward();
    return offload.statistics().offloaded_bytes;
  };
  const std::int64_t without = offloaded(false), with = offloaded(true);
  // The output layer's weight, and the norm's with its two running statistics. The first layer's
  // weight is not saved: the input needs no gradient.
  EXPECT_EQ(without - with, (32 * 4 + 3 * 32) * 4);
}

TEST_F(OffloadTest, AParameterThatMovesIsKeptAllTheSame) {
  Offload offload(eager());
  offload.exempt(net);
  net.in->weight.set_data(net.in->weight.detach().clone());
  const auto moved = [&] {
    const OffloadGuard guard(offload);
    const std::int64_t before = offload.statistics().offloaded_bytes;
    net.loss(input()).backward();
    return offload.statistics().offloaded_bytes - before;
  };
  const std::int64_t first = moved();
  net.out->weight.set_data(net.out->weight.detach().clone());
  EXPECT_EQ(moved(), first);
}

TEST_F(OffloadTest, ARegionIsLeftAlone) {
  Offload offload(eager());
  const OffloadGuard guard(offload);
  {
    const NoOffloadGuard none;
    net.loss(input()).backward();
  }
  EXPECT_EQ(offload.statistics().packs, 0);
  expect_plain();
}

TEST_F(OffloadTest, TheGraphOutlivesItsGuardAndItsOffload) {
  torch::Tensor loss;
  {
    const OffloadGuard guard(eager());
    loss = net.loss(input());
  }
  loss.backward();
  expect_plain();
}

TEST_F(OffloadTest, AGraphDroppedWithoutBackwardLeavesNothing) {
  Offload offload(eager());
  {
    const OffloadGuard guard(offload);
    net.loss(input());
  }
  EXPECT_TRUE(offload.empty());
  EXPECT_GT(offload.statistics().vain_count, 0);
}

TEST_F(OffloadTest, TwoForwardsThenTheirBackwards) {
  Offload offload(eager());
  const OffloadGuard guard(offload);
  const auto first = net.loss(input()), second = net.loss(input() + 1);
  first.backward();
  expect_plain();
  second.backward();
  gradients(net);
  EXPECT_TRUE(offload.empty());
}

TEST_F(OffloadTest, WrittenInPlaceAfterItsSaveIsAnErrorAndTheNextStepWorks) {
  Offload offload(eager());
  {
    const OffloadGuard guard(offload);
    const auto x = torch::ones({64}, torch::requires_grad());
    const auto y = x + 1;
    const auto z = (y * y).sum();
    y.mul_(2);
    EXPECT_THROW(z.backward(), ModifiedInPlace);
  }
  EXPECT_TRUE(offload.empty());
  {
    const OffloadGuard guard(offload);
    net.loss(input()).backward();
  }
  expect_plain();
}

// A saved tensor's storage is given other memory under its copy, in the window and after it: no
// crash, and no gradient of other bytes than the saved ones.
TEST_F(OffloadTest, AStorageThatIsReplacedAfterItsSaveIsAnError) {
  const std::vector<std::function<void(torch::Tensor)>> replacements = {
      [](torch::Tensor y) { y.resize_({1 << 20}); },
      [](torch::Tensor y) { y.storage().unsafeGetStorageImpl()->set_nbytes(0); },
      [](torch::Tensor y) {
        y.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
            c10::GetCPUAllocator()->allocate(y.storage().nbytes()));
      }};
  for (const auto& replace : replacements) {
    for (const std::int64_t window : {std::int64_t{0}, kUnlimited}) {
      for (const bool later : {false, true}) {
        Offload offload(OffloadOptions().min_bytes(1).window(window).prefetch(0).hold(0));
        const OffloadGuard guard(offload);
        const auto x = torch::ones({1 << 16}, torch::requires_grad());
        auto y = torch::full({1 << 16}, 2.F);
        auto z = (x * y).sum();
        auto next = (x * torch::ones({1 << 16})).sum();  // y's turn to be evicted
        if (later) next.backward();
        replace(y);
        EXPECT_THROW(z.backward(), ModifiedInPlace);
      }
    }
  }
  Offload offload(eager());
  const OffloadGuard guard(offload);
  net.loss(input()).backward();
  expect_plain();
}

TEST_F(OffloadTest, AStepsStatisticsAreItsOwn) {
  Offload offload(eager());
  offload.exempt(net);
  std::string first;
  for (int step = 0; step < 3; ++step) {
    const OffloadGuard guard(offload);
    EXPECT_EQ(offload.step_statistics().packs, 0);
    net.loss(input()).backward();
    OffloadStatistics counts = offload.step_statistics();
    counts.stalled_ns = 0;  // no two are alike
    if (step == 0) first = to_string(counts);
    EXPECT_EQ(to_string(counts), first);
  }
  EXPECT_NE(first.find(" copied to the host ("), std::string::npos);
  EXPECT_EQ(offload.statistics().packs, 3 * offload.step_statistics().packs);
}

TEST_F(OffloadTest, TheFirstStepSaysWhatItDoesAndWhere) {
  std::vector<std::string> texts;
  Offload offload(eager().info([&](const std::string& text) { texts.push_back(text); }));
  { const OffloadGuard nothing(offload); }
  for (int step = 0; step < 2; ++step) {
    const OffloadGuard guard(offload);
    net.loss(input()).backward();
  }
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_EQ(texts[0].find("offloading from cpu to memory of its own; "), 0U) << texts[0];
}

TEST_F(OffloadTest, WhatIsNotPlainStays) {
  const OffloadGuard guard(eager());
  const auto x = torch::randn({8, 8}, torch::dtype(torch::kComplexFloat)).requires_grad_();
  (x.conj() * x.conj()).abs().sum().backward();  // a lazy conjugate is saved
  const auto sparse = torch::eye(8).to_sparse();
  const auto w = torch::randn({8, 8}, torch::requires_grad());
  torch::mm(sparse, w).square().sum().backward();
  EXPECT_TRUE(w.grad().allclose(2 * w.detach()));
}

TEST_F(OffloadTest, OptionsWithoutSenseAreRefused) {
  EXPECT_EQ(message([] { Offload offload(OffloadOptions().window(-2)); }),
            "window_bytes should be at least 0 but is -2");
  EXPECT_NE(message([] {
              Offload offload(OffloadOptions().disk("/no/such/folder"));
            }).find("/no/such/folder"),
            std::string::npos);
}

// --- The log and the trace

TEST_F(OffloadTest, TheLogTellsWhatWasDecided) {
  Offload offload(eager().decisions(true));
  offload.exempt(net);
  {
    const OffloadGuard guard(offload);
    net.loss(input()).backward();
  }
  const auto decisions = offload.take_decisions();
  const auto count = [&](DecisionKind kind) {
    return std::count_if(decisions.begin(), decisions.end(),
                         [&](const Decision& decision) { return decision.kind == kind; });
  };
  EXPECT_EQ(count(DecisionKind::kPack), offload.statistics().offloaded_count);
  EXPECT_EQ(count(DecisionKind::kReturn), offload.statistics().offloaded_count);
  EXPECT_GT(count(DecisionKind::kUnpack), 0);
  EXPECT_TRUE(offload.take_decisions().empty());
}

TEST_F(OffloadTest, TheTraceShowsOpsAndCopies) {
  const auto path = std::filesystem::temp_directory_path() / "ferry_offload_test_trace.json";
  Offload offload(eager().trace(true));
  {
    const OffloadGuard guard(offload);
    net.loss(input()).backward();
  }
  offload.write_trace(path);
  const auto trace = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  std::set<std::string> names;
  std::int64_t copied = 0;
  std::int64_t left = 0;  // on the host
  std::map<std::string, std::int64_t> phases;
  std::map<std::string, std::set<std::string>> processes;  // of each category
  for (const auto& event : trace["traceEvents"]) {
    names.insert(event["name"]);
    ++phases[event["ph"]];
    if (event["ph"] == "X") processes[event["cat"]].insert(event["pid"].dump());
    if (event["ph"] == "C") left = event["args"]["bytes"];
    if (event["ph"] == "X" && event["name"] == "offload") {
      copied += event["args"]["bytes"].get<std::int64_t>();
    }
  }
  EXPECT_EQ(phases["s"], offload.statistics().reloaded_count);
  EXPECT_EQ(phases["f"], phases["s"]);
  EXPECT_GE(left, 0);
  EXPECT_LT(left, copied);
  EXPECT_EQ(processes["gpu_memcpy"], std::set<std::string>{"0"});
  EXPECT_EQ(processes["cpu_op"], std::set<std::string>{std::to_string(kKinetoHost)});
  EXPECT_TRUE(names.contains("aten::tanh"));
  EXPECT_TRUE(names.contains("reload"));
  EXPECT_EQ(copied, offload.statistics().offloaded_bytes);
  EXPECT_ANY_THROW(Offload(eager()).write_trace(path)) << "without a trace";
}

// --- Plans

Plan plan_of(Net& net, const std::function<PlanChoice(std::size_t)>& choose) {
  Plan plan;
  CoreOptions options;
  options.min_bytes = 1;
  options.window_tensors = 1;
  plan.options = plan_options(options);
  struct Recorder final : Hooks<at::Tensor> {
    std::vector<Layout> seen;
    std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override {
      struct Kept final : Saved<at::Tensor> {
        at::Tensor tensor;
        at::Tensor unpack() override { return tensor; }
      };
      seen.push_back({DType::kF32, tensor.sizes().vec(), tensor.strides().vec(), 0});
      auto kept = std::make_unique<Kept>();
      kept->tensor = tensor.detach();
      return kept;
    }
  };
  const auto recorder = std::make_shared<Recorder>();
  {
    const HooksGuard<real::TorchAutograd> guard(real::TorchAutograd(), recorder);
    net.loss(input());
  }
  for (std::size_t i = 0; i < recorder->seen.size(); ++i) {
    plan.entries.push_back({i, "Op" + std::to_string(i), recorder->seen[i], i, choose(i)});
  }
  return plan;
}

TEST_F(OffloadTest, APlanIsExecutedAsItStands) {
  const Plan plan =
      plan_of(net, [](std::size_t i) { return i == 1 ? PlanChoice::kOffload : PlanChoice::kKeep; });
  ASSERT_GT(plan.entries.size(), 3u);
  Offload offload(plan, OffloadOptions());
  for (int step = 0; step < 2; ++step) {
    {
      const auto forward = run(offload);
      net.loss(input()).backward();
    }
    expect_plain();
  }
  EXPECT_EQ(offload.statistics().offloaded_count, 2);
  EXPECT_EQ(offload.statistics().packs, 2 * static_cast<std::int64_t>(plan.entries.size()));
}

TEST_F(OffloadTest, APlanThatMovesNothingMovesNothing) {
  const Plan plan = plan_of(net, [](std::size_t) { return PlanChoice::kKeep; });
  Offload offload(plan, OffloadOptions());
  const auto forward = run(offload);
  net.loss(input()).backward();
  EXPECT_EQ(offload.statistics().offloaded_count, 0);
}

TEST_F(OffloadTest, APlanForOtherOptionsOfTheAllocatorSaysSoOnce) {
  static std::string settings;
  real::register_allocator(c10::DeviceType::CPU, [] { return settings; });
  const auto told = [this](const std::string& planned, const std::string& has) {
    settings = has;
    Plan plan = plan_of(net, [](std::size_t) { return PlanChoice::kKeep; });
    plan.alloc_conf = planned;
    std::vector<std::string> texts;
    Offload offload(plan, OffloadOptions().device(torch::kCPU).warn([&](const std::string& text) {
      texts.push_back(text);
    }));
    for (int step = 0; step < 2; ++step) {
      const auto forward = run(offload);
      net.loss(input()).backward();
    }
    return texts;
  };
  const std::string expandable = "expandable_segments:True";
  EXPECT_EQ(told(expandable, "max_split_size_mb:64"),
            std::vector<std::string>{"the plan is for PYTORCH_CUDA_ALLOC_CONF=" + expandable +
                                     "; cpu's allocator has \"max_split_size_mb:64\", and may need "
                                     "more memory than was planned"});
  const std::vector<std::string> usual = told(expandable, "");
  ASSERT_EQ(usual.size(), 1U);
  EXPECT_NE(usual[0].find("cpu's allocator has the usual options, "), std::string::npos);
  EXPECT_EQ(told(expandable, "backend:cudaMallocAsync").size(), 1U) << "not modelled";
  EXPECT_EQ(told(expandable, " expandable_segments : True ").size(), 0U);
  EXPECT_EQ(told("", "max_split_size_mb:64").size(), 0U) << "the plan names none";
  real::register_allocator(c10::DeviceType::CPU, nullptr);
  EXPECT_EQ(told(expandable, "").size(), 0U) << "there is no such allocator";
}

TEST_F(OffloadTest, AModelThatIsNotThePlansSaysWhereAndHow) {
  Plan plan = plan_of(net, [](std::size_t) { return PlanChoice::kOffload; });
  plan.entries[2].layout.shape[0] = 77;
  {
    Offload offload(plan, OffloadOptions());
    const auto forward = run(offload);
    const std::string text = message([&] { net.loss(input()); });
    EXPECT_NE(text.find("at saved tensor 2 (Op2): the plan has f32 [77"), std::string::npos)
        << text;
    EXPECT_NE(text.find("the model saves f32 [8"), std::string::npos) << text;
    EXPECT_TRUE(offload.empty());
  }
  plan.entries[2].layout.shape[0] = 8;
  const PlanEntry last = plan.entries.back();
  plan.entries.pop_back();
  {
    Offload offload(plan, OffloadOptions());
    const auto forward = run(offload);
    EXPECT_NE(message([&] { net.loss(input()); }).find("the plan ends before it"),
              std::string::npos);
  }
  plan.entries.push_back(last);
  plan.entries.push_back(last);
  ++plan.entries.back().pack;
  Offload offload(plan, OffloadOptions());
  {
    const auto forward = run(offload);
    net.loss(input()).backward();
  }
  EXPECT_NE(message([&] { const auto forward = run(offload); }).find("the last forward saved"),
            std::string::npos);
}

TEST_F(OffloadTest, AForwardThatIsCutShortIsNoMismatch) {
  const Plan plan = plan_of(net, [](std::size_t) { return PlanChoice::kOffload; });
  Offload offload(plan, OffloadOptions());
  try {
    const auto forward = run(offload);
    net.norm(net.in(input()).tanh());
    throw std::domain_error("the user's");
  } catch (const std::domain_error&) {
  }
  {
    const auto forward = run(offload);
    net.loss(input()).backward();
  }
  EXPECT_TRUE(offload.empty());
}

TEST_F(OffloadTest, APlanWithAGapIsRefused) {
  Plan plan = plan_of(net, [](std::size_t) { return PlanChoice::kOffload; });
  plan.entries[1].pack = 1'000'000;
  EXPECT_NE(message([&] { Offload offload(plan, OffloadOptions()); }).find("entry 1 of the plan"),
            std::string::npos);
}

TEST_F(OffloadTest, APlanComesFromItsFile) {
  const auto path = std::filesystem::temp_directory_path() / "ferry_offload_test.plan";
  write_plan(path, plan_of(net, [](std::size_t) { return PlanChoice::kOffload; }));
  Offload offload = offload_by_plan(path);
  std::filesystem::remove(path);
  const auto forward = run(offload);
  net.loss(input()).backward();
  EXPECT_GT(offload.statistics().offloaded_count, 0);
  EXPECT_NE(message([] { offload_by_plan("/no/such.plan"); }).find("/no/such.plan"),
            std::string::npos);
}

// It is destroyed after main, when much of LibTorch has gone.
torch::Tensor graph_in_a_static;

TEST_F(OffloadTest, AGraphInAStaticDoesNotCrashAtExit) {
  const OffloadGuard guard(eager());
  graph_in_a_static = net.loss(input());
}

}  // namespace
}  // namespace ferry
