// Every rule of checkpoints, on the CUDA device over the virtual GPU with LibTorch's autograd: a
// mutant that has not the rule is caught. The models are those of the CPU
// (tests/real/api/checkpoint), and some more; nobody may object to the order either.
#include <ATen/cuda/CUDAEvent.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

#include "real/cuda/cuda_device.h"
#include "shared/checkpoint/selective.h"
#include "shared/checkpoint/sequential.h"
#include "shared/replay/replayer.h"
#include "shared/seam/hooks.h"
#include "tests/real/api/checkpoint/checkpoint_cases.h"
#include "tests/real/cuda/labelled.h"
#include "tests/real/cuda_autograd/trained.h"
#include "tests/real/mutant_hunt.h"

namespace ferry::real {
namespace {

struct OnTheVirtualGpu {
  using Device = Labelled<CudaDevice>;
  static constexpr c10::DeviceType kType = c10::kCUDA;
  static Device device() { return Device(CudaDevice({.index = 0})); }
  static at::Tensor leaf(at::IntArrayRef shape) {
    return ferry::leaf(shape).detach().to(kGpu).set_requires_grad(true);
  }
};

// The function goes to a stream of its own, so backward unpacks there.
bool a_recompute_begins_on_forwards_stream(Rules rules) {
  Mutant<OnTheVirtualGpu> mutant(rules);
  const at::Tensor x = OnTheVirtualGpu::leaf({3});
  const c10::cuda::CUDAStream home = c10::cuda::getCurrentCUDAStream();
  const c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool(false, 0);
  const auto follow = [](const c10::cuda::CUDAStream& later, const c10::cuda::CUDAStream& earlier) {
    at::cuda::CUDAEvent event;
    event.record(earlier);
    event.block(later);
  };
  std::vector<c10::cuda::CUDAStream> begun;
  const at::Tensor y = mutant.run(
      [&](const at::Tensor& in) {
        begun.push_back(c10::cuda::getCurrentCUDAStream());
        at::Tensor result;
        follow(side, home);
        {
          const c10::cuda::CUDAStreamGuard aside(side);
          result = in.sin();
        }
        follow(home, side);
        return result;
      },
      x);
  gradient(y, x);
  return begun == std::vector<c10::cuda::CUDAStream>{home, home};
}

// Autograd has a thread for each device, and the CPU's nodes run on the caller's.
bool each_thread_of_a_backward_recomputes_for_itself(Rules rules) {
  Mutant<OnTheVirtualGpu> mutant(rules);
  const at::Tensor x = OnTheVirtualGpu::leaf({3});
  const auto heads = [](const Tensors& in) {
    return Tensors{in[0].sin().exp(), in[0].cpu().cos().exp()};
  };
  const auto gradient_of = [&](const Tensors& y) { return grad({y[0].sum(), y[1].sum()}, {x})[0]; };
  const at::Tensor found = gradient_of(mutant.run(heads, Tensors{x}));
  return found.equal(gradient_of(heads({x}))) && mutant.statistics().recomputes == 2;
}

struct CacheDevice : TorchTensors {
  using Mutex = std::mutex;
  static at::Tensor alias(const at::Tensor& tensor) { return TorchTensors::detach(tensor); }
};
using Cache = SelectiveCache<CacheDevice>;

std::optional<Cache::Outputs> take_exp(Cache& cache) {
  return cache.take("exp", 0, [] { return CheckpointPolicy::kMustSave; });
}

bool what_an_op_made_is_there_again(Rules rules) {
  const at::Tensor made = OnTheVirtualGpu::leaf({3}).exp();
  Cache cache({}, {}, /*allow_mutation=*/false, rules);
  cache.ran("exp", CheckpointPolicy::kMustSave, {made});
  const auto again = take_exp(cache);
  return again && std::get<at::Tensor>(again->front()).equal(made);
}

bool what_was_kept_and_written_is_refused(Rules rules) {
  const at::Tensor made = OnTheVirtualGpu::leaf({3}).exp();
  Cache cache({}, {}, /*allow_mutation=*/false, rules);
  cache.ran("exp", CheckpointPolicy::kMustSave, {made});
  made.detach().add_(1);
  return throws_an<std::exception>([&] { take_exp(cache); });
}

// A chain as checkpoint_sequential runs it: how many of its functions run once more.
bool the_last_segment_runs_once(Rules rules) {
  Mutant<OnTheVirtualGpu> mutant(Rules{});
  const at::Tensor x = OnTheVirtualGpu::leaf({3});
  at::Tensor y = x;
  for (const SequentialSegment& segment : sequential_segments(4, 2, rules)) {
    const auto run = [segment](at::Tensor in) {
      for (auto i = segment.begin; i < segment.end; ++i) in = in.sin();
      return in;
    };
    y = segment.checkpoint ? mutant.run(run, y) : run(y);
  }
  gradient(y, x);
  return mutant.statistics().recomputes == 1;
}

// A span of operators, told of them by hand.
bool a_span_is_refused_when_it_needs_what_was_written(Rules rules) {
  Replayer<CudaDevice, TorchAutograd> replayer(CudaDevice({.index = 0}), TorchAutograd(), rules);
  const at::Tensor root = OnTheVirtualGpu::leaf({3});
  const at::Tensor x = root * 1;
  const auto span = replayer.begin();
  at::Tensor y;
  {
    const HooksGuard<TorchAutograd> hooks(TorchAutograd(), span->hooks());
    const at::Tensor middle = x.sin();
    SeenCall<CudaDevice> seen;
    seen.arguments = {{x}};
    seen.outputs = {middle};
    seen.run = [](const std::vector<at::Tensor>& given) { return Tensors{given[0].sin()}; };
    span->ran(std::move(seen));
    y = middle.cos();
  }
  x.detach().add_(1);
  span->end();
  return throws_an<std::exception>([&] { gradient(y, root); });
}

const std::map<Rule, CheckpointCase>& cases() {
  static const std::map<Rule, CheckpointCase> all = [] {
    auto known = checkpoint_cases<OnTheVirtualGpu>();
    known[Rule::kThreadKey] = each_thread_of_a_backward_recomputes_for_itself;
    known.emplace(Rule::kForwardStream, a_recompute_begins_on_forwards_stream);
    known.emplace(Rule::kKeepOutputs, what_an_op_made_is_there_again);
    known.emplace(Rule::kCheckOutputs, what_was_kept_and_written_is_refused);
    known.emplace(Rule::kLastPlain, the_last_segment_runs_once);
    known.emplace(Rule::kRefuseLate, a_span_is_refused_when_it_needs_what_was_written);
    return known;
  }();
  return all;
}

class CheckpointRule : public testing::TestWithParam<Rule> {};

TEST_P(CheckpointRule, IsCaught) {
  const CheckpointCase each = cases().at(GetParam());
  for (const Schedule& schedule : schedules()) {
    VirtualWorld world(schedule.tempo, schedule.seed);
    EXPECT_NO_THROW(EXPECT_TRUE(each(Rules())) << schedule);
    EXPECT_EQ(hazard(world), "") << schedule;
  }
  const auto is_right = [&](const Schedule& schedule) {
    VirtualWorld world(schedule.tempo, schedule.seed);
    return right(each, Rules::without(GetParam()));
  };
  // Threads take turns, which no schedule decides: on a busy machine all may come out right once.
  const auto all_are_right = [&](int) { return std::ranges::all_of(schedules(), is_right); };
  EXPECT_FALSE(std::ranges::all_of(std::views::iota(0, 10), all_are_right));
}

INSTANTIATE_TEST_SUITE_P(Core, CheckpointRule, testing::ValuesIn(checkpoint_rules()),
                         rule_test_name);

}  // namespace
}  // namespace ferry::real
