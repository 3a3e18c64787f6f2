// What the tests of adaptors put them through: one parcel's way out and back, with the steps that
// the core takes, and the operations that come of it on the simulated device.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/support/world.h"

namespace ferry::test {

// On streams 0 (compute), 1 and 2 (the lanes).
template <class D>
void round_trip(World& world, D device) {
  constexpr std::int64_t kBytes = 4096;
  const auto compute = device.current_stream();
  const auto out = device.lane(Lane::kDeviceToHost);
  const auto back = device.lane(Lane::kHostToDevice);
  const sim::Tensor x = world.make(2 * kBytes);
  const auto produced = device.record(Step::kProduced, compute);
  device.wait(Step::kOffloadAfterProducer, out, produced);
  auto host = device.allocate_host(Step::kHostAllocate, kBytes, HostMemory::kPinned);
  device.offload(Step::kOffload, device.storage(x), 0, host, out);
  const auto offloaded = device.record(Step::kOffloaded, out);
  device.record_use(Step::kAbandon, device.storage(x), out);
  const auto target = device.allocate(Step::kReloadAllocate, kBytes, compute);
  device.wait(Step::kReloadAfterOffload, back, offloaded);
  device.reload(Step::kReload, host, target, back);
  const auto reloaded = device.record(Step::kReloaded, back);
  device.wait(Step::kConsume, compute, reloaded);
  device.record(Step::kNodeDone, compute);
  device.release_host(Step::kHostReturn, std::move(host), {&reloaded, 1});
}

// The core's operations as text: "reloaded 2 e3".
class Lines final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.step == Step::kUser) return;
    std::string text(name(op.step));
    text += op.kind == StreamOpKind::kFree ? " free" : "";
    if (static_cast<std::uint32_t>(op.stream) < 100) {
      text += " " + std::to_string(static_cast<std::uint32_t>(op.stream));
    }
    if (op.kind == StreamOpKind::kRecord || op.kind == StreamOpKind::kWait) {
      text += " e" + std::to_string(static_cast<std::uint32_t>(op.event));
    }
    lines.push_back(text);
  }
  std::vector<std::string> lines;
};

using Text = std::vector<std::string>;

// The round trip's operations where its device is made by `adapted` from the world's.
template <class Adapted>
Text operations(Adapted adapted) {
  Lines lines;
  World world;
  world.machine().add_consumer(&lines);
  round_trip(world, adapted(world.device()));
  return lines.lines;
}

}  // namespace ferry::test
