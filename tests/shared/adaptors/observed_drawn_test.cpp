// What an adaptor of a device hears and does, in drawn calls: an observer is told of each call
// before it is made, with its step and its bytes; and the call that is to fail fails, once.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "formats/stream_op.h"
#include "shared/adaptors/observed.h"
#include "sim/choices/draws.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "tests/support/objection.h"

namespace ferry::test {
namespace {

using Window = std::shared_ptr<const sim::Window>;

// Notes the steps of a machine's operations, in order.
class StepsOfMachine final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.step != Step::kUser) steps.push_back(op.step);
  }
  std::vector<Step> steps;
};

sim::MachineOptions two_devices() {
  sim::MachineOptions options;
  options.devices = 2;
  options.host_total_bytes = 1 << 20;
  return options;
}

Step draw_step(choices::Draws& draws) {
  return static_cast<Step>(draws.in(1, static_cast<int>(kSteps)));
}

// Makes calls of an adapted device in a drawn order.
template <class D>
class Caller {
 public:
  Caller(sim::Machine& machine, Window window, D device, D other)
      : machine_(machine), window_(std::move(window)), device_(device), other_(other) {}

  // Returns what an observer must be told.
  DeviceCall call(choices::Draws& draws) {
    const Step step = draw_step(draws);
    const auto lane = device_.lane(draws.one_in(2) ? Lane::kDeviceToHost : Lane::kHostToDevice);
    const std::int64_t bytes = 512 * draws.in(1, 5);
    switch (draws.in(0, 7)) {
      case 0:
        event_ = device_.record(step, lane);
        return {step, StepKind::kRecord, 0};
      case 1:
        device_.wait(step, lane, event_);
        return {step, StepKind::kWait, 0};
      case 2:
        storage_ = device_.allocate(step, bytes, lane);
        return {step, StepKind::kMemory, bytes};
      case 3:
        device_.record_use(step, storage_, lane);
        return {step, StepKind::kUse, 0};
      case 4:
        device_.release_host(Step::kHostReturn, std::move(host_), {});
        host_ = device_.allocate_host(step, bytes, HostMemory::kPinned);
        return {step, StepKind::kMemory, bytes};
      case 5:
        if (draws.one_in(2)) {
          device_.offload(step, storage_, 0, small_, lane);
        } else {
          device_.reload(step, small_, storage_, lane);
        }
        return {step, StepKind::kCopy, storage_->bytes};
      default:
        arrived_ = device_.transfer(step, tensor(), other_, other_.transfer_stream(0));
        return {step, StepKind::kCopy, 0};
    }
  }
  sim::Tensor tensor() { return sim::make_tensor(storage_, {window_, 0}, machine_.new_version()); }
  void end() {
    device_.release_host(Step::kHostReturn, std::move(host_), {});
    device_.release_host(Step::kHostReturn, std::move(small_), {});
  }

 private:
  sim::Machine& machine_;
  const Window window_;
  D device_, other_;
  sim::Storage storage_ = machine_.allocate(512, machine_.current_stream());
  sim::HostBuffer host_;
  sim::HostBuffer small_{machine_.allocate_host(Step::kHostAllocate, 512), false};
  sim::EventHandle event_;
  sim::Tensor arrived_;
};

constexpr int kCalls = 8;

// Makes the same calls, with an observer and by the device alone. The two must be alike.
template <class Observer, class D = Observed<sim::SimDevice, Observer>>
std::string make_calls(const std::shared_ptr<Observer>& observer, choices::Draws draws,
                       const Window& window, bool fails, std::vector<DeviceCall>& told) {
  sim::Machine machine(two_devices()), alone(two_devices());
  StepsOfMachine steps, must;
  machine.add_consumer(&steps);
  alone.add_consumer(&must);
  Caller<D> caller(machine, window, D(sim::SimDevice(machine), observer),
                   D(sim::SimDevice(machine, 1), observer));
  Caller<sim::SimDevice> plain(alone, window, sim::SimDevice(alone), sim::SimDevice(alone, 1));
  for (int call = 0; call < kCalls; ++call) {
    choices::Draws same = draws;
    try {
      caller.call(same);
    } catch (const InjectedFault&) {
      if (fails) return "";
      throw;
    }
    told.push_back(plain.call(draws));
    if (steps.steps != must.steps) return "an observed call is another one to the device";
  }
  caller.end();
  plain.end();
  return fails ? "a call that was to fail did not" : "";
}

std::string judge_observers(choices::Draws& draws, const Window& window) {
  const choices::Draws calls(draws.bits());
  std::vector<DeviceCall> told, made;
  const auto log = std::make_shared<CallLog>([&](const DeviceCall& call) { told.push_back(call); });
  std::string wrong = make_calls(log, calls, window, false, made);
  if (!wrong.empty()) return wrong;
  if (told != made) return "an observer is told of other calls";
  const auto count = std::make_shared<CallCount>();
  std::vector<DeviceCall> counted;
  wrong = make_calls(count, calls, window, false, counted);
  if (!wrong.empty()) return wrong;
  for (std::size_t step = 0; step < kSteps; ++step) {
    std::int64_t number = 0, bytes = 0;
    for (const DeviceCall& call : made) {
      if (call.step != static_cast<Step>(step)) continue;
      ++number;
      bytes += call.bytes;
    }
    const CallCount::Count& is = count->of(static_cast<Step>(step));
    if (is.calls != number || is.bytes != bytes) return "a step's calls are counted otherwise";
  }
  return "";
}

// The call that is to fail does so, is not made, and does so once.
std::string judge_faults(choices::Draws& draws, const Window& window) {
  const choices::Draws calls(draws.bits());
  const auto none = std::make_shared<FaultPoint>([](Step) { return false; });
  std::vector<DeviceCall> all, made;
  std::string wrong = make_calls(none, calls, window, false, all);
  if (!wrong.empty()) return wrong;
  if (none->fired()) return "a fault point fired that never fails";
  const auto at = static_cast<std::size_t>(draws.in(0, kCalls));
  std::int64_t nth = 0;
  for (std::size_t i = 0; i < at; ++i) nth += all[i].step == all[at].step ? 1 : 0;
  const auto fault = std::make_shared<FaultPoint>(all[at].step, nth);
  wrong = make_calls(fault, calls, window, true, made);
  if (!wrong.empty()) return wrong;
  if (made.size() != at || !fault->fired()) return "another call fails";
  made.clear();
  wrong = make_calls(fault, calls, window, false, made);
  return wrong.empty() && made.size() != kCalls ? "a fault fires twice" : wrong;
}

// The judge objects at no seed.
template <class Judge>
void expect_right(const Judge& judge) {
  const auto window = std::make_shared<const sim::Window>(
      sim::Window{contiguous_layout(DType::kF32, {64}), {0, 256}});
  const auto judged = [&](std::uint64_t seed) {
    choices::Draws draws(seed);
    const std::string wrong = judge(draws, window);
    return wrong.empty() ? Objection() : wrong;
  };
  EXPECT_EQ(first_objection(judged), "");
}

TEST(ObservedDrawn, ObserversAreToldOfEachCallAndCountIt) { expect_right(judge_observers); }

TEST(ObservedDrawn, TheCallThatIsToFailIsNotMadeAndFailsOnce) { expect_right(judge_faults); }

}  // namespace
}  // namespace ferry::test
