// A fake CUDA device for captures without a GPU: fake tensors on "cuda" can go through autograd.
//
// Fake tensors say that they are on a GPU, so autocast and composite operators behave as on a GPU,
// and compute nothing. But PyTorch still asks the CUDA runtime in two places: autograd records the
// current stream of each tensor, and when a backward begins it asks which devices have a context.
// The device guard answers the first question and the CUDA hooks the second. While a capture runs,
// both are replaced: there is one device with one stream and no context.
//
// A process with a GPU does not need this, and torch_ferry/fake_cuda.py does not load it there.
// Streams and events of the program are not supported; they fail as without a driver.

#include <cstring>

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace ferry::real {
namespace {

constexpr auto kCuda = c10::DeviceType::CUDA;

struct Guard final : c10::impl::NoOpDeviceGuardImpl<kCuda> {
  static c10::Device device() { return {kCuda, 0}; }
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, device()); }

  c10::Device exchangeDevice(c10::Device) const override { return device(); }
  c10::Device getDevice() const override { return device(); }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }
};

struct Hooks final : at::CUDAHooksInterface {
  bool isBuilt() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return false; }
};

// PyTorch makes its hooks object once and keeps it, so the object cannot be replaced. This replaces
// the class of the object: the first word of an object is its table of virtual functions.
void* exchange_class(at::CUDAHooksInterface* object, void* table) {
  void* before = nullptr;
  std::memcpy(&before, static_cast<void*>(object), sizeof before);
  std::memcpy(static_cast<void*>(object), &table, sizeof table);
  return before;
}

}  // namespace
}  // namespace ferry::real

// Both functions install the given object, or ours for null, and return the previous one.

extern "C" [[gnu::visibility("default")]] const void* ferry_fake_cuda_guard(const void* given) {
  using c10::impl::DeviceGuardImplInterface;
  static const ferry::real::Guard ours;
  auto& slot = c10::impl::device_guard_impl_registry[static_cast<size_t>(ferry::real::kCuda)];
  return slot.exchange(given == nullptr ? &ours
                                        : static_cast<const DeviceGuardImplInterface*>(given));
}

extern "C" [[gnu::visibility("default")]] void* ferry_fake_cuda_hooks(void* given) {
  static ferry::real::Hooks ours;
  if (given == nullptr) {
    std::memcpy(&given, static_cast<void*>(&ours), sizeof given);
  }
  auto* theirs = const_cast<at::CUDAHooksInterface*>(&at::detail::getCUDAHooks());
  return ferry::real::exchange_class(theirs, given);
}
