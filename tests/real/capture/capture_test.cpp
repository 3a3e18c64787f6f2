// What a capture writes, what it leaves alone, and what it refuses.
#include "ferry/capture.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ferry/checkpoint.h"
#include "formats/program_file.h"
#include "tests/real/capture/models.h"
#include "tests/real/capture/step.h"

namespace ferry::real::capture {
namespace {

std::vector<const Op*> ops(const Program& program, CodeId code, const std::string& name) {
  std::vector<const Op*> found;
  for (const Statement& statement : program.codes[code].statements) {
    const auto* const op = std::get_if<Op>(&statement.action);
    if (op && op->name == name) found.push_back(op);
  }
  return found;
}

// A weight, an input, and a step that is the test's.
struct Rig {
  torch::nn::Module module;
  torch::Tensor weight = module.register_parameter("weight", torch::randn({8, 8}));
  torch::Tensor x = torch::randn({4, 8});

  Program capture(const std::function<void()>& step) {
    return ferry::capture(module, {{"x", x}}, step, CaptureOptions().times(false));
  }
  std::string refusal(const std::function<void()>& step) {
    try {
      capture(step);
    } catch (const CaptureError& error) {
      return error.what();
    }
    return "";
  }
};

TEST(CaptureTest, AStepIsWrittenDown) {
  Rig rig;
  const Program program =
      rig.capture([&] { torch::sigmoid(rig.x.mm(rig.weight)).sum().backward(); });
  ASSERT_EQ(program.globals.size(), 2u);
  EXPECT_EQ(program.globals[0].name, "weight");
  EXPECT_EQ(program.globals[0].kind, GlobalKind::kParameter);
  EXPECT_TRUE(program.globals[0].requires_grad);
  EXPECT_EQ(program.globals[1].name, "x");
  EXPECT_EQ(program.globals[1].kind, GlobalKind::kInput);
  const auto matmuls = ops(program, 1, "aten.mm");
  ASSERT_EQ(matmuls.size(), 1u);
  EXPECT_EQ(matmuls[0]->in, (std::vector<Slot>{1, 0}));
  EXPECT_EQ(matmuls[0]->flops, 2 * 4 * 8 * 8);
  EXPECT_EQ(matmuls[0]->read_bytes, (32 + 64) * 4);
  EXPECT_EQ(matmuls[0]->written_bytes, 32 * 4);
  std::vector<std::string> nodes;
  for (const Statement& statement : program.codes[1].statements) {
    if (const auto* const node = std::get_if<MakeNode>(&statement.action)) {
      nodes.push_back(node->name);
    }
  }
  EXPECT_EQ(nodes, (std::vector<std::string>{"MmBackward0", "SigmoidBackward0", "SumBackward0"}));
}

TEST(CaptureTest, TwoCapturesAreTheSameBytes) {
  for (const auto& [name, make] : all_steps()) {
    torch::manual_seed(1);
    const Step step = make();
    const std::string first = to_text(capture_of(step));
    step.module->zero_grad();
    EXPECT_EQ(to_text(capture_of(step)), first) << name;
  }
}

TEST(CaptureTest, TimesAreMeasuredAndTheOnlyDifference) {
  torch::manual_seed(1);
  const Step step = all_steps().front().make();
  const std::string without = to_text(capture_of(step));
  step.module->zero_grad();
  Program program = capture_of(step, /*times=*/true);
  std::int64_t timed = 0;
  for (Code& code : program.codes) {
    for (Statement& statement : code.statements) {
      if (auto* const op = std::get_if<Op>(&statement.action)) {
        timed += op->measured_ns > 0;
        op->measured_ns = 0;
      }
    }
  }
  EXPECT_GT(timed, 10);
  EXPECT_EQ(to_text(program), without);
}

TEST(CaptureTest, WhatIsCapturedComputesWhatItWould) {
  for (const auto& [name, make] : all_steps()) {
    torch::manual_seed(1);
    const Step step = make();
    const auto gradients = [&] {
      std::vector<torch::Tensor> all;
      for (const torch::Tensor& parameter : step.module->parameters()) {
        all.push_back(parameter.grad().clone());
      }
      step.module->zero_grad();
      return all;
    };
    torch::manual_seed(7);
    step.run();
    const auto plain = gradients();
    capture_of(step);
    const auto captured = gradients();
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(torch::equal(plain[i], captured[i])) << name << ", parameter " << i;
    }
  }
}

// The place of the statement in the code; none: it is not there.
template <class Test>
std::size_t place(const Code& code, Test test) {
  const auto found = std::find_if(code.statements.begin(), code.statements.end(),
                                  [&](const Statement& each) { return test(each.action); });
  return static_cast<std::size_t>(found - code.statements.begin());
}

TEST(CaptureTest, AStorageDiesWhereTheProgramDropsIt) {
  Rig rig;
  std::optional<torch::Tensor> held;
  const Program program = rig.capture([&] {
    const auto y = rig.x.mm(rig.weight);
    auto sine = y.sin();
    auto saved = sine.exp();  // saved by exp; the program drops it all the same
    held = sine.cos();
    saved.reset();
    sine.reset();
    held->sum().backward();
  });
  const Code& forward = program.codes[1];
  const auto made = ops(program, 1, "aten.exp");
  ASSERT_EQ(made.size(), 1u);
  const auto frees = [](Slot slot) {
    return [slot](const Action& action) {
      const auto* const free = std::get_if<Free>(&action);
      return free && std::find(free->slots.begin(), free->slots.end(), slot) != free->slots.end();
    };
  };
  const auto is_sum = [](const Action& action) {
    const auto* const op = std::get_if<Op>(&action);
    return op && op->name == "aten.sum";
  };
  EXPECT_LT(place(forward, frees(made[0]->out[0])), place(forward, is_sum));
  // What the test still holds is handed to main.
  const auto cosine = ops(program, 1, "aten.cos");
  EXPECT_EQ(place(forward, frees(cosine[0]->out[0])), forward.statements.size());
  EXPECT_NE(std::find(forward.results.begin(), forward.results.end(), cosine[0]->out[0]),
            forward.results.end());
}

TEST(CaptureTest, WritesInPlaceAndViewsAreKnown) {
  Rig rig;
  const Program program = rig.capture([&] {
    auto y = rig.x.mm(rig.weight);
    y.narrow(1, 2, 3).mul_(2.0);
    y.sum().backward();
  });
  const auto writes = ops(program, 1, "aten.mul_");
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0]->writes, std::vector<std::uint32_t>{0});
  EXPECT_TRUE(writes[0]->out.empty());
  const std::size_t view = place(program.codes[1], [&](const Action& action) {
    const auto* const made = std::get_if<View>(&action);
    return made && made->out == writes[0]->in[0] && program.types[made->type].offset == 2;
  });
  EXPECT_LT(view, program.codes[1].statements.size());
}

TEST(CaptureTest, NodesThatRunTheSameShareABody) {
  Rig rig;
  const auto codes = [&](int layers) {
    return rig
        .capture([&] {
          auto y = rig.x;
          for (int i = 0; i < layers; ++i) y = torch::tanh(y.mm(rig.weight));
          y.sum().backward();
        })
        .codes.size();
  };
  EXPECT_EQ(codes(8), codes(3));
}

TEST(CaptureTest, WhatCannotBeSaidIsRefused) {
  Rig rig;
  const auto loss = [&] { return torch::tanh(rig.x.mm(rig.weight)).sum(); };
  const std::map<std::string, std::function<void()>> refused = {
      {"create_graph", [&] { loss().backward({}, /*retain_graph=*/true, /*create_graph=*/true); }},
      {"torch::autograd::grad", [&] { torch::autograd::grad({loss()}, {rig.weight}); }},
      {"optimiser",
       [&] {
         loss().backward();
         const torch::NoGradGuard no_grad;
         rig.weight.sub_(rig.weight.grad(), 0.1);
       }},
      {"a reentrant checkpoint",
       [&] {
         const auto block = [](const torch::Tensor& in) { return in.sin(); };
         checkpoint(CheckpointOptions().reentrant(true), block, rig.x.mm(rig.weight));
       }},
      {"no hooks see",
       [&] {
         const NoOffloadGuard alone;
         checkpoint([](const torch::Tensor& in) { return in.sin(); }, rig.x.mm(rig.weight));
       }},
      {"a backward inside a checkpoint",
       [&] {
         const auto block = [](const torch::Tensor& in) {
           in.sin().sum().backward({}, /*retain_graph=*/true);
           return in.cos();
         };
         checkpoint(block, rig.x.mm(rig.weight)).sum().backward();
       }},
      {"aten._to_sparse", [&] { rig.x.to_sparse(); }},
      {"version", [&] {
         const auto y = rig.x.mm(rig.weight);
         (y.sin() + y.variable_data().requires_grad_().cos()).sum().backward();
       }}};
  for (const auto& [word, step] : refused) {
    const std::string message = rig.refusal(step);
    EXPECT_NE(message.find(word), std::string::npos) << word << ": " << message;
    rig.module.zero_grad();
  }
  // And the next one works.
  EXPECT_GT(rig.capture([&] { loss().backward(); }).codes.size(), 2u);
}

TEST(CaptureTest, AGraphFromBeforeIsRefused) {
  Rig rig;
  const auto before = rig.x.mm(rig.weight);
  EXPECT_NE(rig.refusal([&] { before.sin().sum().backward(); }).find("made before it"),
            std::string::npos);
}

TEST(CaptureTest, OneCaptureAtATime) {
  Rig rig;
  EXPECT_NE(rig.refusal([&] { rig.capture([] {}); }).find("under way"), std::string::npos);
}

TEST(CaptureTest, ErrorsOfTheStepLeaveAsTheyAre) {
  Rig rig;
  EXPECT_THROW(rig.capture([&] {
    const auto y = rig.x.mm(rig.weight);
    throw std::out_of_range("mine");
  }),
               std::out_of_range);
  EXPECT_NO_THROW(rig.capture([&] { rig.x.mm(rig.weight).sum().backward(); }));
}

TEST(CaptureTest, AWriteToASavedTensorIsAutogradsErrorHereToo) {
  Rig rig;
  EXPECT_THROW(rig.capture([&] {
    auto y = rig.x.mm(rig.weight).exp();
    const auto loss = y.sum();
    y.add_(1);
    loss.backward();
  }),
               ModifiedInPlace);
}

TEST(CaptureTest, AGraphMayOutliveItsCapture) {
  Rig rig;
  torch::Tensor loss;
  rig.capture([&] { loss = torch::tanh(rig.x.mm(rig.weight)).sum(); });
  loss.backward();
  EXPECT_TRUE(rig.weight.grad().defined());
}

}  // namespace
}  // namespace ferry::real::capture
