// The contracts of shared/seam/device.h on the simulated device, bare and under every adaptor.
#include "tests/support/device_conformance.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "tests/sim/support/world.h"

namespace ferry {
namespace {

using sim::SimDevice;

// Adapt: gives a device on top of a SimDevice, which is the machine's kNumber-th.
template <class Adapt, std::uint32_t kNumber = 0>
struct SimWorld {
  using D = decltype(Adapt()(std::declval<SimDevice>()));
  static constexpr bool kJudgesOrder = true;

  D device() { return Adapt()(world.device()); }
  StreamId stream(int number) { return world.stream(static_cast<std::uint32_t>(number)); }
  void set_current(StreamId stream) { world.machine().set_current_stream(stream); }
  sim::Tensor make(std::vector<std::int64_t> shape) {
    return world.make(contiguous_layout(DType::kF32, std::move(shape)));
  }
  sim::Tensor view(const sim::Tensor& base, const Geometry& geometry) {
    return world.view(base, {DType::kF32, geometry.shape, geometry.strides, geometry.offset});
  }
  void write(const sim::Tensor& tensor) { world.write(tensor); }
  void use(const sim::Tensor& tensor) { world.use(tensor); }
  void work() { world.work(1'000'000); }
  void finish() { world.machine().drain(); }
  std::uint64_t contents(const sim::Tensor& tensor) { return world.contents(tensor); }
  Geometry geometry(const sim::Tensor& tensor) {
    const Layout& layout = tensor->layout.window->layout;
    return {layout.shape, layout.strides, layout.offset - tensor->layout.shift / 4};
  }
  sim::Tensor foreign() { return elsewhere.make(64); }
  std::int64_t too_many_bytes() { return std::int64_t{1} << 40; }
  std::int64_t hazards() { return static_cast<std::int64_t>(world.hazards().size()); }

  static sim::MachineOptions options() {
    sim::MachineOptions options;
    options.device_bytes = std::int64_t{1} << 30;
    options.host_bytes = std::int64_t{1} << 30;
    options.devices = kNumber + 1;
    return options;
  }
  test::World elsewhere;
  test::World world{options(), kNumber};
};

struct Bare {
  SimDevice operator()(SimDevice device) { return device; }
};
struct WithLog {
  Logged<SimDevice> operator()(SimDevice device) {
    return {std::move(device), std::make_shared<CallLog>([](const DeviceCall&) {})};
  }
};
struct WithCount {
  Counted<SimDevice> operator()(SimDevice device) {
    return {std::move(device), std::make_shared<CallCount>()};
  }
};
struct WithFault {
  Faulty<SimDevice> operator()(SimDevice device) {
    return {std::move(device), std::make_shared<FaultPoint>(Step::kHostReturn, 0)};
  }
};
struct WithBend {
  Bent<SimDevice> operator()(SimDevice device) { return {std::move(device), std::nullopt}; }
};
// An adaptor on an adaptor.
struct WithTwo {
  Logged<Counted<SimDevice>> operator()(SimDevice device) {
    return {WithCount()(std::move(device)), std::make_shared<CallLog>([](const DeviceCall&) {})};
  }
};

static_assert(Device<Logged<SimDevice>>);
static_assert(Device<Counted<SimDevice>>);
static_assert(Device<Faulty<SimDevice>>);
static_assert(Device<Bent<SimDevice>>);

using Worlds =
    ::testing::Types<SimWorld<Bare>, SimWorld<WithLog>, SimWorld<WithCount>, SimWorld<WithFault>,
                     SimWorld<WithBend>, SimWorld<WithTwo>, SimWorld<Bare, 1>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, DeviceContract, Worlds);

}  // namespace
}  // namespace ferry
