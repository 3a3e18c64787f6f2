// What random rounds on the CPU device compute with: strips, one-dimensional tensors of 4-byte
// elements whose values follow from a number and from where each lies in its storage.
//
// Every write has a number of its own, so what is read tells who wrote it last, and a view's values
// follow from its base's. Kernels refer to bytes by address (tests/real/cpu/cpu_world.h). Two
// worker streams compute, and all storages are of worker streams' pools: their memory stays with
// the device, so a mutant's stray copy hits bytes and not freed memory.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "tests/real/cpu/cpu_world.h"

namespace ferry::real {

struct Strip {
  std::uint32_t number = 0;
  std::int64_t elements = 0;
  std::int64_t stride = 1;
  std::int64_t first = 0;  // where it began in its storage

  std::uint32_t value(std::int64_t i) const {
    return number * 1'000'003U + static_cast<std::uint32_t>(first + i * stride);
  }
  void fill(char* base) const {
    for (std::int64_t i = 0; i < elements; ++i) {
      const std::uint32_t now = value(i);
      std::memcpy(base + 4 * i * stride, &now, 4);
    }
  }
  bool is_at(const char* base) const {
    for (std::int64_t i = 0; i < elements; ++i) {
      const std::uint32_t expected = value(i);
      if (std::memcmp(base + 4 * i * stride, &expected, 4) != 0) return false;
    }
    return true;
  }
};

class StripWorld {
 public:
  explicit StripWorld(std::shared_ptr<Pace> pace)
      : device_(with_pace(std::move(pace))),
        streams_{device_.new_stream("a"), device_.new_stream("b")} {
    set_current(0);
  }

  CpuDevice& device() { return device_; }

  // Streams by number: 0 and 1.
  CpuStream stream(int number) const { return streams_[static_cast<std::size_t>(number)]; }
  int current() const { return current_; }
  void set_current(int number) {
    current_ = number;
    guard_.reset();
    guard_.emplace(stream(number));
  }
  void follow(int later, int earlier) {
    if (later == earlier) return;
    device_.wait(Step::kUser, stream(later), device_.record(Step::kUser, stream(earlier)));
  }
  // Blocks until the stream has done what it was given.
  void reach(const CpuStream& stream) {
    device_.wait(Step::kUser, CpuStream(), device_.record(Step::kUser, stream));
  }

  // Of the current stream's pool; its bytes are not written.
  at::Tensor make(std::int64_t elements) {
    return make_on(device_, device_.current_stream(), {elements});
  }
  // The strip of a tensor that is written from now on, on the current stream.
  Strip write(const at::Tensor& tensor) {
    const Strip strip{++numbers_, tensor.size(0), tensor.stride(0), tensor.storage_offset()};
    device_.enqueue(device_.current_stream(), [strip, to = base(tensor)] { strip.fill(to); });
    return strip;
  }
  // Has the current stream look whether the tensor holds the strip.
  void read(const at::Tensor& tensor, const Strip& strip) {
    if (!fits(tensor, strip)) {
      ++*wrong_;
      return;
    }
    device_.enqueue(device_.current_stream(), [strip, from = base(tensor), wrong = wrong_] {
      if (!strip.is_at(from)) ++*wrong;
    });
  }
  std::int64_t wrong() const { return *wrong_; }

 private:
  static char* base(const at::Tensor& tensor) {
    return static_cast<char*>(tensor.storage().mutable_data()) + 4 * tensor.storage_offset();
  }
  // The strip's window, and inside its storage.
  static bool fits(const at::Tensor& tensor, const Strip& strip) {
    if (tensor.dim() != 1 || tensor.size(0) != strip.elements || tensor.stride(0) != strip.stride) {
      return false;
    }
    const std::int64_t first = tensor.storage_offset();
    const std::int64_t last = first + (strip.elements - 1) * strip.stride;
    return first >= 0 && 4 * (last + 1) <= TorchTensors::bytes(tensor.storage());
  }

  CpuDevice device_;
  std::array<CpuStream, 2> streams_;
  std::optional<CpuStreamGuard> guard_;
  int current_ = 0;
  std::uint32_t numbers_ = 0;
  std::shared_ptr<std::atomic<std::int64_t>> wrong_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
};

}  // namespace ferry::real
