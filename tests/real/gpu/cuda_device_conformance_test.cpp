// The contracts of shared/seam/device.h on a real CUDA device.
#include "tests/support/device_conformance.h"

#include <memory>
#include <vector>

#include "tests/real/gpu/gpu_world.h"

namespace ferry {
namespace {

using real::CudaDevice;

struct RealCudaWorld {
  using D = CudaDevice;
  static constexpr bool kJudgesOrder = false;

  D device() {
    const auto self = std::make_shared<std::weak_ptr<D>>();
    D device({.index = 0, .pinned_bytes_max = std::int64_t{1} << 30, .host_usage = [self] {
                const auto known = self->lock();
                return HostUsage{known ? known->statistics().host_in_use_bytes : 0, 1 << 30};
              }});
    kept = std::make_shared<D>(device);
    *self = kept;
    return device;
  }
  c10::Stream stream(int number) { return world.stream(number); }
  void set_current(c10::Stream stream) { world.set_current(stream); }
  at::Tensor make(std::vector<std::int64_t> shape) { return world.make(shape); }
  at::Tensor view(const at::Tensor& base, const Geometry& geometry) {
    return base.as_strided(geometry.shape, geometry.strides, geometry.offset);
  }
  void write(const at::Tensor& tensor) { world.write(tensor); }
  void use(const at::Tensor& tensor) { tensor.sum(); }
  void work() { world.sleep_ms(50); }
  void finish() { world.finish(); }
  std::vector<std::int32_t> contents(const at::Tensor& tensor) { return world.contents(tensor); }
  Geometry geometry(const at::Tensor& tensor) {
    return {tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset()};
  }
  at::Tensor foreign() { return at::empty({16}); }
  std::int64_t too_many_bytes() { return std::int64_t{1} << 44; }
  std::int64_t hazards() { return 0; }

  real::GpuWorld world;
  std::shared_ptr<D> kept;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, DeviceContract, ::testing::Types<RealCudaWorld>);

}  // namespace
}  // namespace ferry
