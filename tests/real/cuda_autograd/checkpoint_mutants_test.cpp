// The core's checkpointer on a CUDA device, with LibTorch's own autograd on the virtual GPU: a node
// that unpacks on another stream than forward's, and the mutants of the three steps for that.
#include <ATen/cuda/CUDAEvent.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "real/autograd/torch_autograd.h"
#include "shared/adaptors/bent.h"
#include "shared/checkpoint/checkpointer.h"
#include "tests/real/cuda/labelled.h"
#include "tests/real/cuda_autograd/trained.h"
#include "tests/real/mutant_hunt.h"
#include "tests/real/offload_mutants.h"
#include "tests/real/verdict.h"

namespace ferry::real {
namespace {

using vgpu::Tempo;
using Mutated = Bent<Labelled<CudaDevice>>;
using Recompute = Checkpointer<Mutated, TorchAutograd>;

constexpr std::int64_t kElements = 1024;

void follow(c10::Stream later, c10::Stream earlier) {
  at::cuda::CUDAEvent event;
  event.record(c10::cuda::CUDAStream(earlier));
  event.block(c10::cuda::CUDAStream(later));
}

void scribble() { torch::full({kElements}, NAN, torch::device(kGpu)); }

c10::Stream& side() {
  static c10::Stream stream = c10::cuda::getStreamFromPool(false, 0).unwrap();
  return stream;
}

// Identity; backward reads what forward saved on the side stream, in the program's own order.
struct ReadsAside : torch::autograd::Function<ReadsAside> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x) {
    context->save_for_backward({x});
    return x * 1;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const c10::Stream home = c10::cuda::getCurrentCUDAStream().unwrap();
    torch::Tensor product;
    follow(side(), home);
    {
      const c10::cuda::CUDAStreamGuard aside(side());
      torch::Tensor x = context->get_saved_variables()[0].detach();
      product = gradients[0] * x;
      gradients[0].record_stream(side());
    }
    scribble();  // takes what was freed, before this stream follows the other
    follow(home, side());
    product.record_stream(home);
    return {product};
  }
};

// The gradients of a few checkpointed segments.
Tensors segments(Recompute* recompute, VirtualWorld& world) {
  torch::Tensor x = torch::linspace(-1, 1, kElements, torch::device(kGpu));
  const torch::Tensor leaf = x.requires_grad_();
  for (int i = 0; i < 4; ++i) {
    torch::Tensor y;
    const auto run = [](std::vector<torch::Tensor> inputs) {
      // No node but ReadsAside keeps what it reads, and it is the first to unpack.
      torch::Tensor inner = inputs[0].tanh() * 1.5;
      scribble();
      return ReadsAside::apply(inner) * 1.25;
    };
    if (recompute != nullptr) {
      recompute->run(
          {x}, {}, [run](std::vector<torch::Tensor> inputs) { run(std::move(inputs)); },
          [&](std::vector<torch::Tensor> inputs) { y = run(std::move(inputs)); });
    } else {
      y = run({x});
    }
    x = std::move(y);
    scribble();
  }
  x.square().sum().backward();
  scribble();
  world.finish();
  return {leaf.grad().cpu()};
}

std::optional<Verdict> attempt(const Schedule& schedule, std::optional<Mutation> mutation) {
  side();
  static const Tensors expected = [] {
    VirtualWorld world;
    return segments(nullptr, world);
  }();
  VirtualWorld world(schedule.tempo, schedule.seed);
  Recompute recompute(Mutated(Labelled<CudaDevice>(CudaDevice({.index = 0})), mutation),
                      TorchAutograd());
  const std::string wrong = difference(segments(&recompute, world), expected);
  const std::string objection = hazard(world);
  if (!wrong.empty()) return Verdict{"bytes", wrong + "; " + objection};
  if (!objection.empty()) return Verdict{"log", objection};
  return std::nullopt;
}

TEST(CheckpointAside, GivesThePlainBits) {
  for (const Schedule& schedule : schedules()) {
    const auto verdict = attempt(schedule, std::nullopt);
    EXPECT_FALSE(verdict) << schedule << ": " << verdict->oracle << ": " << verdict->words;
  }
}

std::vector<Mutation> mutations() {
  std::vector<Mutation> all;
  for (const Step step : {Step::kRecomputed, Step::kUnpackRecomputed, Step::kRecomputedInUse}) {
    for (const Bend bend : {Bend::kDrop, Bend::kOtherStream, Bend::kDelay, Bend::kStale}) {
      const Mutation mutation{step, bend};
      if (applies(mutation)) all.push_back(mutation);
    }
  }
  return all;
}

class CheckpointMutant : public testing::TestWithParam<Mutation> {};

TEST_P(CheckpointMutant, IsCaught) {
  expect_caught(GetParam(), {.most = 60, .for_both = 60}, [](std::uint64_t seed) {
    return attempt({Tempo::kMixed, seed}, GetParam());
  });
}

INSTANTIATE_TEST_SUITE_P(Core, CheckpointMutant, testing::ValuesIn(mutations()), mutant_test_name);

}  // namespace
}  // namespace ferry::real
