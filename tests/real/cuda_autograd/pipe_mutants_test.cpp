// Transfers between two virtual GPUs on the pipelines' device, under every tempo; and the mutants
// of their steps, bent in every way that applies.
#include <ATen/cuda/CUDAEvent.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "real/pipeline/torch_pipe_device.h"
#include "shared/adaptors/bent.h"
#include "shared/transfer/transfer.h"
#include "tests/real/cuda_autograd/trained.h"
#include "tests/real/mutant_hunt.h"
#include "tests/real/offload_mutants.h"
#include "tests/real/verdict.h"

namespace ferry::real {
namespace {

using vgpu::Tempo;

constexpr std::int64_t kElements = 1024;
const c10::Device kOther(c10::DeviceType::CUDA, 1);

// Takes one step wrongly. (shared/adaptors/bent.h bends devices that offload.)
class Wrong : public TorchPipeDevice {
 public:
  Wrong(c10::Device device, std::optional<Mutation> mutation)
      : TorchPipeDevice(device), mutation_(mutation) {}

  Event record(Step step, const Stream& stream) {
    if (is(step, Bend::kDrop)) return Event();
    const Stream on = is(step, Bend::kOtherStream) ? other() : stream;
    const Event event = TorchPipeDevice::record(step, on);
    catch_up();
    auto& latest = state_->latest[on.id()];
    const Event before = std::exchange(latest, event);
    return is(step, Bend::kStale) ? before : event;
  }
  void wait(Step step, const Stream& stream, const Event& event) {
    if (is(step, Bend::kDrop)) return;
    if (is(step, Bend::kDelay)) {
      catch_up();
      state_->late = [step, stream, event] { TorchPipeDevice::wait(step, stream, event); };
      return;
    }
    Event wanted = event;
    if (is(step, Bend::kStale)) wanted = std::exchange(state_->waited, event);
    TorchPipeDevice::wait(step, is(step, Bend::kOtherStream) ? other() : stream, wanted);
  }
  void record_use(Step step, const Storage& storage, const Stream& stream) {
    if (is(step, Bend::kDrop)) return;
    TorchPipeDevice::record_use(step, storage, is(step, Bend::kOtherStream) ? other() : stream);
  }
  Tensor transfer(Step step, const Tensor& tensor, Wrong& to, const Stream& stream) {
    Tensor arrived = TorchPipeDevice::transfer(step, tensor, to,
                                               is(step, Bend::kOtherStream) ? to.other() : stream);
    to.catch_up();
    return arrived;
  }

 private:
  struct State {
    std::map<c10::StreamId, Event> latest;  // record on each stream
    Event waited;
    std::function<void()> late;  // runs after the next record or copy
  };

  bool is(Step step, Bend bend) const {
    return mutation_ && mutation_->step == step && mutation_->bend == bend;
  }
  void catch_up() {
    if (const auto late = std::exchange(state_->late, nullptr)) late();
  }
  // One of this device that no transfer of the test has.
  Stream other() const { return transfer_stream(7); }

  std::optional<Mutation> mutation_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};
static_assert(PipelineDevice<Wrong>);

void scribble(c10::Device device) { torch::full({kElements}, NAN, torch::device(device)); }

Tensors sums(std::optional<Mutation> mutation) {
  const Wrong from(kGpu, mutation);
  const Wrong to(kOther, mutation);
  std::vector<torch::Tensor> results;
  for (std::uint32_t i = 0; i < 6; ++i) {
    Transfer<Wrong> way({0, from, from.compute_stream(), from.transfer_stream(i % 2)},
                        {1, to, to.compute_stream(), to.transfer_stream(i % 2)});
    torch::Tensor made = torch::linspace(i, i + 1, kElements, torch::device(kGpu)).sin().mul_(2);
    way.send();
    torch::Tensor arrived = way.receive(made);
    made.reset();
    scribble(kGpu);
    way.take({&arrived, 1});
    results.push_back((arrived * 3).sum());
    arrived.reset();
    const c10::cuda::CUDAStreamGuard guard(
        c10::cuda::CUDAStream(to.transfer_stream(i % 2)));  // its pool's next
    scribble(kOther);
  }
  Tensors bits;
  for (const torch::Tensor& result : results) bits.push_back(result.cpu());
  return bits;
}

std::optional<Verdict> attempt(const Schedule& schedule, std::optional<Mutation> mutation) {
  static const Tensors expected = [] {
    const VirtualWorld world;
    return sums(std::nullopt);
  }();
  VirtualWorld world(schedule.tempo, schedule.seed);
  const std::string wrong = difference(sums(mutation), expected);
  const std::string objection = hazard(world);
  if (!wrong.empty()) return Verdict{"bytes", wrong + "; " + objection};
  if (!objection.empty()) return Verdict{"log", objection};
  return std::nullopt;
}

TEST(PipeTransfer, BringsTheBits) {
  for (const Schedule& schedule : schedules()) {
    const auto verdict = attempt(schedule, std::nullopt);
    EXPECT_FALSE(verdict) << schedule << ": " << verdict->oracle << ": " << verdict->words;
  }
}

std::vector<Mutation> mutations() {
  std::vector<Mutation> all;
  for (auto step = static_cast<std::size_t>(Step::kSent); step < kPipelineSteps; ++step) {
    for (const Bend bend : {Bend::kDrop, Bend::kOtherStream, Bend::kDelay, Bend::kStale}) {
      const Mutation mutation{static_cast<Step>(step), bend};
      if (applies(mutation)) all.push_back(mutation);
    }
  }
  return all;
}

class PipeMutant : public testing::TestWithParam<Mutation> {};

TEST_P(PipeMutant, IsCaught) {
  expect_caught(GetParam(), {.most = 60, .for_both = 60}, [](std::uint64_t seed) {
    return attempt({Tempo::kMixed, seed}, GetParam());
  });
}

INSTANTIATE_TEST_SUITE_P(Core, PipeMutant, testing::ValuesIn(mutations()), mutant_test_name);

}  // namespace
}  // namespace ferry::real
