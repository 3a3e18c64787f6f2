// A real CUDA device to test on: LibTorch's own kernels, and sleeps that keep a stream busy.
//
// Every tensor is 4-byte integers with values of its own, `arange + serial`, so that any other
// tensor's bytes differ. Nothing here judges order: what shows is wrong bytes.
#pragma once

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "real/cuda/cuda_device.h"
#include "tests/real/gpu/spin.h"

namespace ferry::real {

class GpuWorld {
 public:
  GpuWorld()
      : streams_{c10::cuda::getDefaultCUDAStream(0).unwrap(),
                 c10::cuda::getStreamFromPool(false, 0).unwrap()} {
    finish();
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
  GpuWorld(const GpuWorld&) = delete;
  GpuWorld& operator=(const GpuWorld&) = delete;
  ~GpuWorld() { set_current(streams_[0]); }

  c10::Stream stream(int number) const { return streams_[static_cast<std::size_t>(number)]; }
  static void set_current(c10::Stream stream) {
    c10::cuda::setCurrentCUDAStream(c10::cuda::CUDAStream(stream));
  }

  // The values that the tensor of this serial number has.
  static at::Tensor values(at::IntArrayRef shape, std::int32_t serial) {
    const std::int64_t elements =
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    return at::arange(elements, at::device(at::kCUDA).dtype(at::kInt))
        .add_(serial * 1'000'003)
        .view(shape);
  }
  at::Tensor make(at::IntArrayRef shape) { return values(shape, ++serial_); }
  std::int32_t last_serial() const { return serial_; }
  void write(const at::Tensor& tensor) { at::Tensor(tensor).copy_(make(tensor.sizes())); }

  // On the current stream.
  static void sleep_ms(std::int64_t milliseconds) {
    spin(c10::cuda::getCurrentCUDAStream().stream(), 1000 * milliseconds);
  }
  static void sleep_on(c10::Stream stream, std::int64_t milliseconds) {
    spin(c10::cuda::CUDAStream(stream).stream(), 1000 * milliseconds);
  }
  static void finish() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }
  static std::vector<std::int32_t> contents(const at::Tensor& tensor) {
    const at::Tensor host = tensor.cpu().contiguous();
    const auto* const data = host.const_data_ptr<std::int32_t>();
    return {data, data + host.numel()};
  }

 private:
  std::vector<c10::Stream> streams_;
  std::int32_t serial_ = 0;
};

}  // namespace ferry::real
