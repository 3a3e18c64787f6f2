#include "sim/peak/stack_words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry::peak {
namespace {

const std::string kTorch = "/usr/lib/python3/site-packages/torch/";

// Returns the words of a stack, innermost frame first.
StackWords words(std::vector<MemoryFrame> frames) {
  MemorySnapshot snapshot;
  snapshot.stacks = {{}, {}};
  for (MemoryFrame& frame : frames) {
    snapshot.stacks[1].push_back(static_cast<std::uint32_t>(snapshot.frames.size()));
    snapshot.frames.push_back(std::move(frame));
  }
  return words_of(snapshot, 1);
}

const MemoryFrame kCall{kTorch + "nn/modules/module.py", "_call_impl", 1798};
const MemoryFrame kLinear{kTorch + "nn/modules/linear.py", "forward", 134};
const MemoryFrame kModel{"/home/me/run/model.py", "forward", 8};
const MemoryFrame kScript{"/home/me/run/train.py", "<module>", 20};
const MemoryFrame kEngine{"libtorch_cpu.so", "torch::autograd::Engine::thread_main(long)", 5};
const MemoryFrame kStep{kTorch + "optim/optimizer.py", "wrapper", 567};

TEST(StackWords, ThePlaceIsTheInnermostFrameOfTheProgram) {
  const StackWords forward = words({kLinear, kCall, kModel, kCall, kScript});
  EXPECT_EQ(forward.when, When::kForward);
  EXPECT_EQ(forward.place(), "run/model.py:8 in forward");
  EXPECT_EQ(forward.file, "/home/me/run/model.py");
  EXPECT_EQ(forward.what, "linear");
}

TEST(StackWords, AFileOfAPackageIsNamedFromThePackageOn) {
  const MemoryFrame llama{"/env/lib/python3.11/site-packages/transformers/models/llama.py",
                          "forward", 7};
  EXPECT_EQ(words({kLinear, kCall, llama, kCall, kScript}).place(),
            "transformers/models/llama.py:7 in forward");
}

TEST(StackWords, TheOutermostOperatorThatPythonCalledIsNamed) {
  const MemoryFrame call{"libtorch_cpu.so", "at::_ops::addmm::call(at::Tensor const&)", 1};
  const MemoryFrame outer{"libtorch_cpu.so", "at::_ops::linear::call(at::Tensor const&)", 2};
  const MemoryFrame between{"libtorch_cpu.so", "at::_ops::other::call(at::Tensor const&)", 3};
  EXPECT_EQ(words({call, outer, kLinear, between, kCall, kModel}).what, "linear");
  EXPECT_EQ(words({call, kModel, outer}).what, "addmm");
}

TEST(StackWords, BackwardIsTheEnginesAndItsNodeIsNamed) {
  const MemoryFrame node{"libtorch_cpu.so", "torch::autograd::generated::GeluBackward0::apply(x)",
                         1};
  const StackWords backward =
      words({{"libtorch_cpu.so", "at::_ops::gelu_backward::call(x)", 1}, node, kEngine});
  EXPECT_EQ(backward.when, When::kBackward);
  EXPECT_EQ(backward.what, "GeluBackward0");
  EXPECT_EQ(backward.place(), "");
}

TEST(StackWords, ANodeIsNamedWhereItsApplyIsInlined) {
  const MemoryFrame node{
      "libtorch_cpu.so",
      "torch::autograd::generated::ExpBackward0_apply_functional(std::vector<at::Tensor>&&)", 1};
  EXPECT_EQ(words({node, kEngine}).what, "ExpBackward0");
}

TEST(StackWords, AModuleThatBackwardCallsIsNoForward) {
  const MemoryFrame unpack{kTorch + "utils/checkpoint.py", "unpack_hook", 1100};
  EXPECT_EQ(words({kLinear, kCall, kModel, unpack}).when, When::kRecompute);
  EXPECT_EQ(words({kLinear, kCall, kModel, kEngine}).when, When::kBackward);
  EXPECT_EQ(words({kLinear, kCall, kModel, unpack, kEngine, kScript}).when, When::kRecompute);
}

TEST(StackWords, AStepOfTheOptimizerThatCallsTheModelIsNoOptimizersMemory) {
  EXPECT_EQ(words({kLinear, kCall, kModel, kStep, kScript}).when, When::kForward);
  EXPECT_EQ(words({kEngine, kStep, kScript}).when, When::kBackward);
  const StackWords state = words({{kTorch + "optim/adam.py", "_init_group", 179}, kStep, kScript});
  EXPECT_EQ(state.when, When::kOptimizer);
  EXPECT_EQ(state.what, "adam._init_group");
  EXPECT_EQ(state.place(), "run/train.py:20 in <module>");
}

TEST(StackWords, MovingAModelAndThePlainProgramAreApart) {
  EXPECT_EQ(words({{kTorch + "nn/modules/module.py", "_apply", 966}, kScript}).when, When::kMoved);
  EXPECT_EQ(words({kScript}).when, When::kProgram);
  EXPECT_EQ(words({{"<stdin>", "<module>", 1}}).place(), "<stdin>:1 in <module>");
}

TEST(StackWords, AFileThatOnlyPassesACallOnIsNoOperator) {
  EXPECT_EQ(words({kCall, kModel}).what, "");
  EXPECT_EQ(words({{kTorch + "autograd/__init__.py", "_make_grads", 7}, kScript}).what,
            "autograd._make_grads");
}

TEST(StackWords, WithoutFramesNothingIsKnown) {
  EXPECT_EQ(words({}).when, When::kNoFrames);
  EXPECT_EQ(words({{"<frozen runpy>", "_run_code", 88}}).when, When::kNoFrames);
  EXPECT_EQ(words_of({}, 7).when, When::kNoFrames);
  EXPECT_EQ(words({{"libc.so", "??", 0}}).place(), "");
}

}  // namespace
}  // namespace ferry::peak
