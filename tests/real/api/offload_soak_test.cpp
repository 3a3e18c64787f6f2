// A long training in which something fails again and again: at every named step of the core, and in
// the user's own code. Each failed step is told, leaves nothing, and is taken again; the parameters
// stay those of a twin that trains without Ferry, bit for bit, and the process does not grow.
//
// FERRY_SOAK_STEPS=100000 in the environment: so many steps, and the curve is printed.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "real/autograd/torch_autograd.h"
#include "real/cpu/cpu_device.h"
#include "shared/adaptors/observed.h"
#include "shared/checkpoint/checkpointer.h"
#include "shared/offload/offloader.h"
#include "tests/real/dice.h"
#include "tests/real/sanitized.h"

namespace ferry::real {
namespace {

using Device = Faulty<CpuDevice>;
using Tensors = std::vector<torch::Tensor>;

// What is to fail in the step that is taken, once.
struct Planned {
  std::optional<Step> step;
  std::int64_t nth = 0;
  enum class Own { kNothing, kForward, kRecompute, kBackward } own = Own::kNothing;
  bool fired = false;
};

struct OwnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void fail_if(Planned& planned, Planned::Own where) {
  if (planned.own != where || planned.fired) return;
  planned.fired = true;
  throw OwnError("the user's own");
}

// Identity; its backward may throw.
struct MayThrow : torch::autograd::Function<MayThrow> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               Planned* planned) {
    context->saved_data["planned"] = reinterpret_cast<std::int64_t>(planned);
    context->save_for_backward({x});
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    context->get_saved_variables();
    fail_if(*reinterpret_cast<Planned*>(context->saved_data["planned"].toInt()),
            Planned::Own::kBackward);
    return {gradients[0], torch::Tensor()};
  }
};

constexpr std::int64_t kWidth = 32;

Tensors make_weights() {
  torch::manual_seed(3);
  Tensors weights;
  for (int i = 0; i < 6; ++i) {
    weights.push_back((torch::randn({kWidth, kWidth}) / 8).requires_grad_());
  }
  return weights;
}

torch::Tensor block(const torch::Tensor& x, const torch::Tensor& weight) {
  return torch::dropout(torch::gelu(x.matmul(weight)), 0.1, true) + x;
}

class Soak {
 public:
  explicit Soak(std::uint64_t seed)
      : dice_(seed),
        faults_(std::make_shared<FaultPoint>([this](Step step) { return fails(step); })),
        checkpointer_(Device(cpu_, faults_), TorchAutograd()) {
    for (const std::int64_t window : {0, 8000}) {
      CoreOptions options;
      options.min_bytes = 1;
      options.window_bytes = window;
      options.prefetch_bytes = 8000;
      options.hold_bytes = window;
      options.copy_streams = window == 0 ? CopyStreams::kOne : CopyStreams::kTwo;
      options.reload_pool = window == 0 ? ReloadPool::kConsumer : ReloadPool::kCopyStream;
      offloaders_.push_back(std::make_unique<Offloader<Device, TorchAutograd>>(
          Device(cpu_, faults_), TorchAutograd(), options));
    }
  }

  // One step of the training, failures and all.
  void step(std::int64_t number) {
    draw();
    const std::uint64_t seed = static_cast<std::uint64_t>(number);
    if (!attempt(seed)) {
      planned_ = {};
      ASSERT_TRUE(attempt(seed)) << "step " << number << ": the next attempt fails as well";
    }
    // The twin.
    loss(twin_, seed, [](const auto& function, const torch::Tensor& x) {
      return function(x);
    }).backward();
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      ASSERT_TRUE(weights_[i].grad().equal(twin_[i].grad())) << "step " << number;
    }
    for (auto* weights : {&weights_, &twin_}) {
      const torch::NoGradGuard no_grad;
      for (torch::Tensor& weight : *weights) {
        weight.sub_(weight.grad(), 0.01);
        weight.mutable_grad().reset();
      }
    }
  }

  void finish() {
    cpu_.finish();
    EXPECT_EQ(cpu_.usage().host_bytes, 0);
    EXPECT_EQ(cpu_.usage().deferred_blocks, 0);
  }

  // What a failure left without protection is kept, and counted.
  std::int64_t quarantined() const {
    std::int64_t all = 0;
    for (const auto& offloader : offloaders_) all += offloader->statistics().quarantined;
    return all;
  }
  const std::array<std::int64_t, kSteps>& fired() const { return fired_; }
  std::int64_t told() const { return told_; }
  std::int64_t own() const { return own_; }
  std::int64_t failures() const { return failures_; }

 private:
  void draw() {
    planned_ = {};
    if (dice_.one_in(3)) {
      planned_.step = static_cast<Step>(1 + dice_.below(static_cast<std::int64_t>(kSteps) - 1));
      planned_.nth = dice_.below(6);
    } else if (dice_.one_in(8)) {
      planned_.own = static_cast<Planned::Own>(1 + dice_.below(3));
    }
    offloader_ = static_cast<std::size_t>(dice_.below(2));
  }

  bool fails(Step step) {
    if (planned_.fired || planned_.step != step || planned_.nth-- > 0) return false;
    planned_.fired = true;
    ++fired_[static_cast<std::size_t>(step)];
    ++failures_;
    return true;
  }

  template <class Segment>
  torch::Tensor loss(const Tensors& weights, std::uint64_t seed, Segment segment) {
    torch::manual_seed(seed);
    torch::Tensor x = torch::randn({8, kWidth});
    x = block(x, weights[0]);
    x = MayThrow::apply(x, &planned_);
    x = segment([&](const torch::Tensor& y) { return block(block(y, weights[1]), weights[2]); }, x);
    x = block(x, weights[3]);
    x = segment([&](const torch::Tensor& y) { return block(y, weights[4]); }, x);
    return block(x, weights[5]).square().mean();
  }

  // Returns whether it went well.
  bool attempt(std::uint64_t seed) {
    auto& offloader = *offloaders_[offloader_];
    bool well = true;
    try {
      torch::Tensor result;
      {
        const HooksGuard<TorchAutograd> guard(TorchAutograd(), offloader.hooks());
        result = loss(weights_, seed, [this](auto function, const torch::Tensor& x) {
          return checkpointed(std::move(function), x);
        });
      }
      fail_if(planned_, Planned::Own::kForward);
      result.backward();
    } catch (const InjectedFault& error) {
      EXPECT_EQ(error.step(), planned_.step);
      ++told_;
      well = false;
    } catch (const OwnError&) {
      ++own_;
      well = false;
    }
    EXPECT_TRUE(offloader.empty());
    EXPECT_TRUE(checkpointer_.empty());
    if (!well) {
      for (torch::Tensor& weight : weights_) weight.mutable_grad().reset();
    }
    return well;
  }

  template <class Function>
  torch::Tensor checkpointed(Function function, const torch::Tensor& x) {
    torch::Tensor result;
    checkpointer_.run(
        {x}, {},
        [this, function](Tensors inputs) {
          fail_if(planned_, Planned::Own::kRecompute);
          function(inputs[0]);
        },
        [&](Tensors inputs) { result = function(inputs[0]); });
    return result;
  }

  Dice dice_;
  Planned planned_;
  CpuDevice cpu_;
  std::shared_ptr<FaultPoint> faults_;
  std::vector<std::unique_ptr<Offloader<Device, TorchAutograd>>> offloaders_;
  Checkpointer<Device, TorchAutograd> checkpointer_;
  std::size_t offloader_ = 0;
  Tensors weights_ = make_weights();
  Tensors twin_ = make_weights();
  std::array<std::int64_t, kSteps> fired_{};
  std::int64_t failures_ = 0, told_ = 0, own_ = 0;
};

std::int64_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

// Steps that do not fail here: with one stream that computes nothing goes from one to another,
// there is one device, every prefetched target is consumed, and host bytes go back without fail.
bool is_out_of_reach(Step step) {
  return step >= Step::kRecomputed || step == Step::kDiscard || step == Step::kHostReturn;
}

TEST(Soak, ALongTrainingSurvivesEveryFailure) {
  const char* const asked = std::getenv("FERRY_SOAK_STEPS");
  const std::int64_t steps = asked ? std::atoll(asked) : 2000;
  at::set_num_threads(1);
  Soak soak(1);
  std::int64_t early = 0;
  if (asked) std::printf("step,resident_kib,failures,told,own,quarantined\n");
  for (std::int64_t i = 1; i <= steps; ++i) {
    soak.step(i);
    if (testing::Test::HasFailure()) return;
    if (i == steps / 5) early = resident_kib();
    if (asked && i % std::max<std::int64_t>(steps / 20, 1) == 0) {
      std::printf("%lld,%lld,%lld,%lld,%lld,%lld\n", static_cast<long long>(i),
                  static_cast<long long>(resident_kib()), static_cast<long long>(soak.failures()),
                  static_cast<long long>(soak.told()), static_cast<long long>(soak.own()),
                  static_cast<long long>(soak.quarantined()));
    }
  }
  soak.finish();
  if (!kSanitized) {
    EXPECT_LT(resident_kib() - early, 2048);
  }
  EXPECT_GT(soak.own(), 0);
  EXPECT_LT(soak.quarantined(), soak.failures() / 8);
  std::set<std::string> never;
  for (std::size_t i = 1; i < kSteps; ++i) {
    const Step step = static_cast<Step>(i);
    if (soak.fired()[i] == 0 && !is_out_of_reach(step)) never.insert(std::string(name(step)));
    if (asked) {
      std::printf("%s,%lld\n", std::string(name(step)).c_str(),
                  static_cast<long long>(soak.fired()[i]));
    }
  }
  EXPECT_EQ(never, std::set<std::string>());
}

}  // namespace
}  // namespace ferry::real
