// A device whose calls carry their step into the log of the virtual runtime.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "shared/adaptors/forward.h"
#include "vgpu/runtime/control.h"

namespace ferry::real {

class StepLabel {
 public:
  explicit StepLabel(Step step) { vgpu::set_step(step); }
  StepLabel(const StepLabel&) = delete;
  StepLabel& operator=(const StepLabel&) = delete;
  ~StepLabel() { vgpu::set_step(Step::kUser); }
};

template <Device D>
class Labelled : public Forward<D> {
 public:
  using Base = Forward<D>;
  using Base::Base;
  using typename Base::Event;
  using typename Base::HostBuffer;
  using typename Base::Storage;
  using typename Base::Stream;

  Event record(Step step, const Stream& stream) {
    const StepLabel label(step);
    return Base::record(step, stream);
  }
  void wait(Step step, const Stream& stream, const Event& event) {
    const StepLabel label(step);
    Base::wait(step, stream, event);
  }
  Storage allocate(Step step, std::int64_t bytes, const Stream& stream) {
    const StepLabel label(step);
    return Base::allocate(step, bytes, stream);
  }
  void record_use(Step step, const Storage& storage, const Stream& stream) {
    const StepLabel label(step);
    Base::record_use(step, storage, stream);
  }
  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory kind) {
    const StepLabel label(step);
    return Base::allocate_host(step, bytes, kind);
  }
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept {
    const StepLabel label(step);
    Base::release_host(step, std::move(host), events);
  }
  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream) {
    const StepLabel label(step);
    Base::offload(step, storage, begin, host, stream);
  }
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream) {
    const StepLabel label(step);
    Base::reload(step, host, storage, stream);
  }
};

}  // namespace ferry::real
