// What the tests of the CPU device compute with: kernels on streams, and the paces to run them at.
//
// A kernel refers to bytes by address, as a kernel of a GPU's would: it keeps no storage alive, so
// a block that is given out too early is overwritten, and a read that comes too early reads what
// was there. Contents are a function of a number, so that every write has contents of its own.
#pragma once

#include <ATen/ATen.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "real/cpu/cpu_device.h"
#include "tests/support/device_conformance.h"

namespace ferry::real {

// 4-byte elements of a window, wherever its bytes lie.
struct Window {
  char* base = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  explicit Window(const at::Tensor& tensor)
      : base(static_cast<char*>(tensor.storage().mutable_data()) + tensor.storage_offset() * 4),
        shape(tensor.sizes().vec()),
        strides(tensor.strides().vec()) {}

  template <class Visit>
  void each(Visit visit) const {
    std::vector<std::int64_t> at(shape.size(), 0);
    for (std::int64_t size : shape) {
      if (size == 0) return;
    }
    for (std::int32_t element = 0;; ++element) {
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * strides[i];
      visit(base + offset * 4, element);
      std::size_t i = at.size();
      while (i > 0 && ++at[i - 1] == shape[i - 1]) at[--i] = 0;
      if (i == 0) return;
    }
  }
  void fill(std::int32_t number) const {
    each([number](char* to, std::int32_t element) {
      const std::int32_t value = number * 1'000'003 + element;
      std::memcpy(to, &value, 4);
    });
  }
  std::vector<std::int32_t> read() const {
    std::vector<std::int32_t> values;
    each([&](const char* from, std::int32_t) {
      values.emplace_back();
      std::memcpy(&values.back(), from, 4);
    });
    return values;
  }
};

// Keeps a stream busy until it is opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

// A tensor of int32 on a storage of the stream's pool; its bytes are not written.
inline at::Tensor make_on(CpuDevice& device, const CpuStream& stream,
                          std::vector<std::int64_t> shape) {
  at::Tensor tensor = at::empty({0}, at::kInt);
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t elements = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = elements;
    elements *= shape[i];
  }
  tensor.set_(device.allocate(Step::kUser, elements * 4, stream), 0, shape, strides);
  return tensor;
}

inline CpuDeviceOptions on_disk(CpuDeviceOptions options = {}) {
  options.disk = DiskOptions{std::filesystem::temp_directory_path()};
  return options;
}

inline CpuDeviceOptions with_pace(std::shared_ptr<Pace> pace, CpuDeviceOptions options = {}) {
  options.pace = std::move(pace);
  return options;
}

}  // namespace ferry::real
