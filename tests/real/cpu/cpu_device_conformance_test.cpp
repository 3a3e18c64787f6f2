// The contracts of shared/seam/device.h on the CPU device: host tier in memory and on disk, at
// every pace. Streams that compute are workers here, so that there is an order to get wrong.
#include "tests/support/device_conformance.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "tests/real/cpu/cpu_world.h"

namespace ferry {
namespace {

using real::CpuDevice;

static_assert(Device<Logged<CpuDevice>>);
static_assert(Device<Counted<CpuDevice>>);
static_assert(Device<Faulty<CpuDevice>>);
static_assert(Device<Bent<CpuDevice>>);

// A hazard is a read that saw other bytes than the program's order says. Where every task waits
// until it is asked for, whatever is not ordered comes too late: so a missing edge is always seen.
template <class Setting>
struct CpuWorld {
  using D = CpuDevice;
  using Tensor = at::Tensor;
  static constexpr bool kJudgesOrder = Setting::kLazy;

  CpuWorld() { set_current(streams[0]); }
  ~CpuWorld() { gate->open(); }

  D device() { return cpu; }
  real::CpuStream stream(int number) { return streams[static_cast<std::size_t>(number)]; }
  void set_current(real::CpuStream stream) {
    guard.reset();
    guard.emplace(stream);
  }
  Tensor make(std::vector<std::int64_t> shape) {
    Tensor tensor = real::make_on(cpu, cpu.current_stream(), std::move(shape));
    fill(tensor);
    return tensor;
  }
  Tensor view(const Tensor& base, const Geometry& geometry) {
    return base.as_strided(geometry.shape, geometry.strides, geometry.offset);
  }
  void write(const Tensor& tensor) {
    tensor.unsafeGetTensorImpl()->bump_version();
    fill(tensor);
  }
  void use(const Tensor& tensor) {
    cpu.enqueue(cpu.current_stream(), [this, window = real::Window(tensor), latest = fills] {
      const Tensor same = at::empty_strided(window.shape, window.strides, at::kInt);
      const real::Window expected(same);
      expected.fill(latest);
      if (window.read() != expected.read()) ++wrong_reads;
    });
  }
  void work() {
    cpu.enqueue(cpu.current_stream(), [this] { gate->pass(); });
  }
  void finish() {
    gate->open();
    cpu.finish();
  }
  std::vector<std::int32_t> contents(const Tensor& tensor) {
    finish();
    return real::Window(tensor).read();
  }
  Geometry geometry(const Tensor& tensor) {
    return {tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset()};
  }
  Tensor foreign() { return at::empty({16}, at::kMeta); }
  std::int64_t too_many_bytes() { return std::int64_t{1} << 47; }
  std::int64_t hazards() {
    const auto end = cpu.record(Step::kUser, cpu.current_stream());
    cpu.wait(Step::kUser, real::CpuStream(), end);  // the others stay as late as they can
    return wrong_reads;
  }

  void fill(const Tensor& tensor) {
    cpu.enqueue(cpu.current_stream(),
                [window = real::Window(tensor), number = ++fills] { window.fill(number); });
  }

  std::shared_ptr<real::Gate> gate = std::make_shared<real::Gate>();
  std::int32_t fills = 0;
  std::int64_t wrong_reads = 0;
  CpuDevice cpu{Setting::options()};
  std::vector<real::CpuStream> streams{cpu.new_stream("0"), cpu.new_stream("1")};
  std::optional<real::CpuStreamGuard> guard;
};

struct Free {
  static constexpr bool kLazy = false;
  static real::CpuDeviceOptions options() { return {}; }
};
struct Lazy {
  static constexpr bool kLazy = true;
  static real::CpuDeviceOptions options() {
    return real::with_pace(std::make_shared<real::LazyPace>());
  }
};
struct FreeOnDisk : Free {
  static real::CpuDeviceOptions options() { return real::on_disk(); }
};
struct LazyOnDisk : Lazy {
  static real::CpuDeviceOptions options() { return real::on_disk(Lazy::options()); }
};

using Worlds =
    ::testing::Types<CpuWorld<Free>, CpuWorld<Lazy>, CpuWorld<FreeOnDisk>, CpuWorld<LazyOnDisk>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, DeviceContract, Worlds);

}  // namespace
}  // namespace ferry
