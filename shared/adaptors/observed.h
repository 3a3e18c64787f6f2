// Watches a device: an observer is called before each call that names a step. If the observer
// throws, the call throws the same error.
//
// There are three observers: Logged passes every call to a sink, Counted counts calls and bytes by
// step, and Faulty makes the n-th call of a step fail. The simulator uses Faulty
// (sim/run/training/run_training.h), and the tests of shared/ use all three.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "shared/adaptors/forward.h"
#include "shared/seam/invariant.h"

namespace ferry {

struct DeviceCall {
  Step step = Step::kUser;
  StepKind kind = StepKind::kNone;
  std::int64_t bytes = 0;  // of copies and allocations
  bool operator==(const DeviceCall&) const = default;
};

template <Device D, class Observer>
class Observed : public Forward<D> {
 public:
  using Base = Forward<D>;
  using typename Base::Event;
  using typename Base::HostBuffer;
  using typename Base::Storage;
  using typename Base::Stream;
  using typename Base::Tensor;

  Observed(D upstream, std::shared_ptr<Observer> observer)
      : Base(std::move(upstream)), observer_(std::move(observer)) {
    invariant(observer_ != nullptr, "an observed device has an observer");
  }

  Event record(Step step, const Stream& stream) {
    observer_->on({step, StepKind::kRecord, 0});
    return Base::record(step, stream);
  }
  void wait(Step step, const Stream& stream, const Event& event) {
    observer_->on({step, StepKind::kWait, 0});
    Base::wait(step, stream, event);
  }
  Storage allocate(Step step, std::int64_t bytes, const Stream& stream) {
    observer_->on({step, StepKind::kMemory, bytes});
    return Base::allocate(step, bytes, stream);
  }
  void record_use(Step step, const Storage& storage, const Stream& stream) {
    observer_->on({step, StepKind::kUse, 0});
    Base::record_use(step, storage, stream);
  }
  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory kind) {
    observer_->on({step, StepKind::kMemory, bytes});
    return Base::allocate_host(step, bytes, kind);
  }
  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream) {
    observer_->on({step, StepKind::kCopy, this->bytes(storage)});
    Base::offload(step, storage, begin, host, stream);
  }
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream) {
    observer_->on({step, StepKind::kCopy, this->bytes(storage)});
    Base::reload(step, host, storage, stream);
  }
  Tensor transfer(Step step, const Tensor& tensor, Observed& to,
                  const Stream& stream) requires PipelineDevice<D> {
    observer_->on({step, StepKind::kCopy, 0});
    return Base::transfer(step, tensor, to, stream);
  }
  // Calls that give memory back cannot fail, so they are not observed.

 private:
  std::shared_ptr<Observer> observer_;
};

class CallLog {
 public:
  explicit CallLog(std::function<void(const DeviceCall&)> sink) : sink_(std::move(sink)) {}
  void on(const DeviceCall& call) { sink_(call); }

 private:
  std::function<void(const DeviceCall&)> sink_;
};

class CallCount {
 public:
  struct Count {
    std::int64_t calls = 0;
    std::int64_t bytes = 0;
  };
  void on(const DeviceCall& call) {
    Count& count = counts_[static_cast<std::size_t>(call.step)];
    ++count.calls;
    count.bytes += call.bytes;
  }
  const Count& of(Step step) const { return counts_[static_cast<std::size_t>(step)]; }

 private:
  std::array<Count, kSteps> counts_{};
};

class InjectedFault : public std::runtime_error {
 public:
  explicit InjectedFault(Step step)
      : std::runtime_error("injected fault at " + std::string(name(step))), step_(step) {}
  Step step() const { return step_; }

 private:
  Step step_;
};

class FaultPoint {
 public:
  // Call number `nth` (from 0) of `step` fails, once.
  FaultPoint(Step step, std::int64_t nth)
      : fails_([step, nth](Step at) mutable { return at == step && nth-- == 0; }) {
    invariant(nth >= 0, "calls that may fail are counted from 0", step);
  }
  // Every call for which `fails` returns true fails.
  explicit FaultPoint(std::function<bool(Step)> fails) : fails_(std::move(fails)) {}
  void on(const DeviceCall& call) {
    if (!fails_(call.step)) return;
    fired_ = true;
    throw InjectedFault(call.step);
  }
  bool fired() const { return fired_; }

 private:
  std::function<bool(Step)> fails_;
  bool fired_ = false;
};

template <Device D>
using Logged = Observed<D, CallLog>;
template <Device D>
using Counted = Observed<D, CallCount>;
template <Device D>
using Faulty = Observed<D, FaultPoint>;

}  // namespace ferry
