// Schedules that a GPU seldom has by itself: a kernel that spins stands before every copy of one
// direction, or before every kernel of the program's. Whoever does not wait for a late copy reads
// or overwrites bytes too early; a copy that does not wait for a late kernel reads too early.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "real/autograd/below_autograd.h"
#include "shared/adaptors/forward.h"
#include "tests/real/gpu/spin.h"

namespace ferry::real {

enum class Late : std::uint8_t { kNobody, kOffloads, kReloads, kKernels };
inline constexpr std::int64_t kLateMicroseconds = 300;

// A device whose copies come late.
template <Device D>
class LateCopies : public Forward<D> {
 public:
  using Base = Forward<D>;
  using typename Base::HostBuffer;
  using typename Base::Storage;
  using typename Base::Stream;

  LateCopies(D upstream, Late late) : Base(std::move(upstream)), late_(late) {}

  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream) {
    if (late_ == Late::kOffloads) delay(stream);
    Base::offload(step, storage, begin, host, stream);
  }
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream) {
    if (late_ == Late::kReloads) delay(stream);
    Base::reload(step, host, storage, stream);
  }

 private:
  static void delay(const Stream& stream) {
    spin(c10::cuda::CUDAStream(stream).stream(), kLateMicroseconds);
  }
  Late late_;
};

// While it is in force (OpScope::enter), the ops of this thread and of backwards begun here come
// late, each on the stream that is current.
class LateKernels final : public OpScope {
 public:
  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
           torch::jit::Stack* stack) override {
    spin(c10::cuda::getCurrentCUDAStream().stream(), kLateMicroseconds);
    run_outside(op, keys, stack);
  }
};

}  // namespace ferry::real
