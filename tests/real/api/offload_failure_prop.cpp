// Whatever fails, wherever: the cause reaches the caller, nothing is left, and the next step has
// the gradients of a run without offloading.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

#include "ferry/hooks.h"
#include "ferry/offload.h"
#include "real/autograd/torch_autograd.h"
#include "real/cpu/cpu_device.h"
#include "shared/adaptors/observed.h"
#include "shared/offload/offloader.h"
#include "tests/real/api/random_model.h"
#include "tests/real/sanitized.h"

namespace ferry {
namespace {

using real::CpuDevice;
using real::TorchAutograd;

struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws in backward while `armed`.
struct Trap : torch::autograd::Function<Trap> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const bool* armed) {
    context->saved_data["armed"] = reinterpret_cast<std::int64_t>(armed);
    context->save_for_backward({x});
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto x = context->get_saved_variables();
    if (*reinterpret_cast<const bool*>(context->saved_data["armed"].toInt())) {
      throw UserError("in backward");
    }
    return {gradients[0], torch::Tensor()};
  }
};

std::vector<torch::Tensor> step(const RandomModel& model, const bool* armed) {
  torch::manual_seed(11);
  auto x = torch::randn({RandomModel::kRows, RandomModel::kColumns}, torch::kFloat64);
  x = Trap::apply(x.matmul(model.weights[0]), armed);
  const auto loss = model.loss(model.forward(x, [] { return 0; }));
  return torch::autograd::grad({loss}, model.weights, {}, false, false, true);
}

bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].defined() != b[i].defined()) return false;
    if (a[i].defined() && !a[i].view(torch::kLong).equal(b[i].view(torch::kLong))) return false;
  }
  return true;
}

CoreOptions draw_core_options() {
  const auto pick = [](std::int64_t a, std::int64_t b) {
    return *rc::gen::arbitrary<bool>() ? a : b;
  };
  CoreOptions options;
  options.min_bytes = 1;
  options.window_tensors = pick(1, kUnlimited);
  options.window_bytes = pick(0, 8000);
  options.prefetch_bytes = pick(0, 8000);
  options.hold_bytes = pick(0, 8000);
  options.copy_streams = *rc::gen::arbitrary<bool>() ? CopyStreams::kTwo : CopyStreams::kOne;
  options.reload_pool =
      *rc::gen::arbitrary<bool>() ? ReloadPool::kConsumer : ReloadPool::kCopyStream;
  return options;
}

RC_GTEST_PROP(OffloadFailure, AFailedStepOfTheCore, ()) {
  const RandomModel model(*gen_layers());
  const bool calm = false;
  const auto plain = step(model, &calm);
  const auto at =
      static_cast<Step>(*rc::gen::resize(100, rc::gen::inRange<std::size_t>(1, kCheckpointSteps)));
  const auto nth = *rc::gen::resize(100, rc::gen::inRange(0, 8));
  const auto fault = std::make_shared<FaultPoint>(at, nth);
  CpuDevice cpu;
  using Device = Faulty<CpuDevice>;
  Offloader<Device, TorchAutograd> offloader(Device(cpu, fault), TorchAutograd(),
                                             draw_core_options());
  const HooksGuard<TorchAutograd> guard(TorchAutograd(), offloader.hooks());
  bool threw = false;
  for (int i = 0; i < 3 && !fault->fired(); ++i) {
    try {
      RC_ASSERT(same(step(model, &calm), plain));
    } catch (const InjectedFault& error) {
      RC_ASSERT(error.step() == at);
      threw = true;
    }
    RC_ASSERT(offloader.empty());
  }
  if (fault->fired()) RC_ASSERT(same(step(model, &calm), plain));
  RC_ASSERT(offloader.empty());
  cpu.finish();
  RC_ASSERT(cpu.usage().host_bytes == 0);
  RC_ASSERT(cpu.usage().deferred_blocks == 0);
  RC_CLASSIFY(threw, "threw");
  RC_CLASSIFY(!threw && fault->fired(), "absorbed");
}

RC_GTEST_PROP(OffloadFailure, TheUsersOwn, ()) {
  const RandomModel model(*gen_layers());
  bool armed = false;
  const auto plain = step(model, &armed);
  CpuDevice cpu;
  Offloader<CpuDevice, TorchAutograd> offloader(cpu, TorchAutograd(), draw_core_options());
  {
    const HooksGuard<TorchAutograd> guard(TorchAutograd(), offloader.hooks());
    armed = true;
    RC_ASSERT_THROWS_AS(step(model, &armed), UserError);
    armed = false;
    RC_ASSERT(offloader.empty());
    // In forward: a pack of the user's own within the region.
    const auto fail = [&] {
      const SavedTensorsHooks hooks(
          [](const torch::Tensor&) -> torch::Tensor { throw UserError("in pack"); },
          [](const torch::Tensor& x) { return x; });
      step(model, &armed);
    };
    RC_ASSERT_THROWS_AS(fail(), UserError);
    RC_ASSERT(offloader.empty());
    RC_ASSERT(same(step(model, &armed), plain));
  }
  RC_ASSERT(offloader.empty());
  cpu.finish();
  RC_ASSERT(cpu.usage().host_bytes == 0);
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Forward and backward, forward alone, and failures, thousands of times.
TEST(OffloadLeaks, ThousandsOfStepsLeaveNothing) {
  const RandomModel model({{LayerKind::kLinear, 0},
                           {LayerKind::kSoftmax, 0},
                           {LayerKind::kGate, 0},
                           {LayerKind::kExpand, 0},
                           {LayerKind::kTanh, 0}});
  Offload offload(OffloadOptions().min_bytes(1).window(8000).prefetch(8000));
  bool armed = false;
  std::int64_t early = 0;
  constexpr int kSteps = 3000;
  for (int i = 0; i < kSteps; ++i) {
    const OffloadGuard guard(offload);
    armed = i % 5 == 4;
    if (armed) {
      EXPECT_THROW(step(model, &armed), UserError);
    } else if (i % 5 == 3) {
      model.forward(model.buffer.matmul(model.weights[0]), [] { return 0; });
    } else {
      step(model, &armed);
    }
    ASSERT_TRUE(offload.empty()) << "after step " << i;
    if (i == kSteps / 3) early = resident_bytes();
  }
  // A sanitizer keeps what is freed.
  if (!real::kSanitized) {
    EXPECT_LT(resident_bytes() - early, std::int64_t{4} << 20);
  }
  EXPECT_EQ(offload.statistics().quarantined, 0);
}

}  // namespace
}  // namespace ferry
