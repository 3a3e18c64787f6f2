// The contracts of shared/seam/device.h on the CUDA device over the virtual GPU, at every tempo.
#include "tests/support/device_conformance.h"

#include <memory>
#include <vector>

#include "shared/adaptors/observed.h"
#include "tests/real/cuda/world.h"

namespace ferry {
namespace {

using real::CudaDevice;
using vgpu::Tempo;

template <Tempo tempo, std::uint64_t seed, c10::DeviceIndex index>
struct CudaWorld {
  using D = CudaDevice;
  static constexpr bool kJudgesOrder = true;

  // The machine's memory is in use by others, too: here, what the device itself pins.
  D device() {
    const auto self = std::make_shared<std::weak_ptr<D>>();
    D device({.index = index, .host_usage = [self] {
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
  void use(const at::Tensor& tensor) { world.use(tensor); }
  void work() { world.work(); }
  void finish() { world.finish(); }
  std::vector<std::int32_t> contents(const at::Tensor& tensor) { return world.contents(tensor); }
  Geometry geometry(const at::Tensor& tensor) {
    return {tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset()};
  }
  at::Tensor foreign() { return at::empty({16}); }
  std::int64_t too_many_bytes() { return std::int64_t{1} << 40; }
  std::int64_t hazards() { return static_cast<std::int64_t>(world.hazards().size()); }

  real::VirtualWorld world{tempo, seed, index};
  std::shared_ptr<D> kept;
};

using Worlds = ::testing::Types<CudaWorld<Tempo::kEager, 0, 0>, CudaWorld<Tempo::kLazy, 0, 0>,
                                CudaWorld<Tempo::kRandom, 1, 0>, CudaWorld<Tempo::kMixed, 1, 0>,
                                CudaWorld<Tempo::kMixed, 2, 0>, CudaWorld<Tempo::kLazy, 0, 1>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, DeviceContract, Worlds);

}  // namespace
}  // namespace ferry
