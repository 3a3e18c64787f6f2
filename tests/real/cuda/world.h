// A CUDA device on the virtual runtime to test on: tensors of LibTorch's, kernels of ours, and the
// checkers watching.
//
// Kernels are functions that run when their stream comes to them, so they read what is there then:
// a missing order shows as wrong values. `make` and `write` fill a tensor with values of its own;
// `read` compares, when it runs, with what is expected.
#pragma once

#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "real/cuda/cuda_device.h"
#include "tests/real/cuda/judge.h"
#include "vgpu/runtime/control.h"

namespace ferry::real {

// The elements of a strided window of 4-byte integers, in the order of its indices.
inline std::vector<std::int64_t> element_offsets(at::IntArrayRef sizes, at::IntArrayRef strides) {
  std::vector<std::int64_t> offsets = {0};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t k = 0; k < sizes[i]; ++k) next.push_back(offset + k * strides[i]);
    }
    offsets.swap(next);
  }
  return offsets;
}

class VirtualWorld {
 public:
  using Values = std::vector<std::int32_t>;

  explicit VirtualWorld(vgpu::Tempo tempo = vgpu::Tempo::kEager, std::uint64_t seed = 0,
                        c10::DeviceIndex index = 0)
      : index_(index), guard_(index), streams_{default_stream(), pool_stream()} {
    vgpu::reset();
    c10::cuda::CUDACachingAllocator::emptyCache();  // every run sees the same addresses afresh
    vgpu::set_tempo(tempo, seed);
    vgpu::set_listener(&judge_);
  }
  VirtualWorld(const VirtualWorld&) = delete;
  VirtualWorld& operator=(const VirtualWorld&) = delete;
  ~VirtualWorld() {
    set_current(default_stream());
    vgpu::reset();
  }

  c10::DeviceIndex index() const { return index_; }
  c10::Stream stream(int number) const { return streams_[static_cast<std::size_t>(number)]; }
  c10::Stream current() const { return c10::cuda::getCurrentCUDAStream(index_).unwrap(); }
  static void set_current(c10::Stream stream) {
    c10::cuda::setCurrentCUDAStream(c10::cuda::CUDAStream(stream));
  }

  at::Tensor empty(at::IntArrayRef shape) const {
    return at::empty(shape, at::device(at::Device(at::kCUDA, index_)).dtype(at::kInt));
  }
  at::Tensor make(at::IntArrayRef shape) {
    at::Tensor tensor = empty(shape);
    fill(tensor);
    return tensor;
  }
  // In place.
  void write(const at::Tensor& tensor) {
    fill(tensor);
    tensor.unsafeGetTensorImpl()->bump_version();
  }
  // What the last fill gave or will give the tensor, whichever one it was.
  Values last_values() const { return last_; }

  // A kernel that reads the tensor and counts where it is not as expected.
  void read(const at::Tensor& tensor, Values expected) {
    auto* const data = static_cast<const std::int32_t*>(tensor.const_data_ptr());
    kernel("read", {range(tensor)}, {},
           [data, offsets = element_offsets(tensor.sizes(), tensor.strides()),
            expected = std::move(expected), wrong = wrong_] {
             for (std::size_t i = 0; i < offsets.size(); ++i) {
               if (data[offsets[i]] == expected[i]) continue;
               ++*wrong;
               return;
             }
           });
  }
  void use(const at::Tensor& tensor) {
    kernel("use", {range(tensor)}, {}, [] {});
  }
  // Keeps the current stream busy until somebody waits for it.
  void work() {
    const c10::cuda::CUDAStream on(current());
    vgpu::set_tempo(on.stream(), vgpu::Tempo::kLazy);
    kernel("work", {}, {}, [] {});
  }
  void finish() {
    const c10::cuda::CUDAGuard guard(index_);
    C10_CUDA_CHECK(cudaDeviceSynchronize());
  }
  // Of the bytes as they will be; the host learns nothing by asking.
  Values contents(const at::Tensor& tensor) {
    vgpu::run_everything();
    auto* const data = static_cast<const std::int32_t*>(tensor.const_data_ptr());
    Values values;
    for (const std::int64_t offset : element_offsets(tensor.sizes(), tensor.strides())) {
      values.push_back(data[offset]);
    }
    return values;
  }

  // Kernels that read something else than they were to.
  std::int64_t wrong() const { return *wrong_; }
  std::vector<std::string> hazards() const { return judge_.hazards(); }
  std::int64_t allocated_bytes() const {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(index_).allocated_bytes[0].current;
  }

 private:
  c10::Stream default_stream() const { return c10::cuda::getDefaultCUDAStream(index_).unwrap(); }
  c10::Stream pool_stream() const {
    return c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index_).unwrap();
  }
  static Range range(const at::Tensor& tensor) {
    const Extent extent = TorchTensors::extent(TorchTensors::layout(tensor));
    return {TorchTensors::address(tensor.storage()) + static_cast<std::uint64_t>(extent.begin),
            static_cast<std::uint64_t>(extent.bytes())};
  }
  void kernel(const char* name, std::vector<Range> reads, std::vector<Range> writes,
              std::function<void()> body) {
    vgpu::launch(c10::cuda::CUDAStream(current()).stream(), name, std::move(reads),
                 std::move(writes), std::move(body));
  }
  void fill(const at::Tensor& tensor) {
    auto* const data = static_cast<std::int32_t*>(tensor.mutable_data_ptr());
    const auto offsets = element_offsets(tensor.sizes(), tensor.strides());
    last_.resize(offsets.size());
    std::iota(last_.begin(), last_.end(), ++fills_ * 1'000'003);
    kernel("fill", {}, {range(tensor)}, [data, offsets, values = last_] {
      for (std::size_t i = 0; i < offsets.size(); ++i) data[offsets[i]] = values[i];
    });
  }

  Judge judge_;
  const c10::DeviceIndex index_;
  c10::cuda::CUDAGuard guard_;
  const std::vector<c10::Stream> streams_;
  std::shared_ptr<std::int64_t> wrong_ = std::make_shared<std::int64_t>(0);
  Values last_;
  std::int32_t fills_ = 0;
};

}  // namespace ferry::real
