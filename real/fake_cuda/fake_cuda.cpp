// A CUDA device for captures where there is none: fake tensors of "cuda" go through autograd.
//
// Fake tensors say that they are on a GPU, so that autocast and composite operators do what they do
// there, and compute nothing. Two places in PyTorch ask the CUDA runtime all the same: autograd
// takes down each tensor's current stream, and asks, as a backward begins, which devices have a
// context. The first is the device guard's to answer, the second the hooks'. While a capture runs
// both are ours: there is one device, it has one stream and no context.
//
// A process with a GPU needs none of this, and torch_ferry/fake_cuda.py does not load it there. Not
// modelled: streams and events of the program's own, which are refused as without a driver.

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

// PyTorch makes its hooks once and keeps them for good, so they cannot be replaced. What can is the
// class that the object is of: its table of virtual functions is the object's first word.
void* exchange_class(at::CUDAHooksInterface* object, void* table) {
  void* before = nullptr;
  std::memcpy(&before, static_cast<void*>(object), sizeof before);
  std::memcpy(static_cast<void*>(object), &table, sizeof table);
  return before;
}

}  // namespace
}  // namespace ferry::real

// Both take what they gave before, or null for ours, and give what was there.

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
