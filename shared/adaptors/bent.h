// A device that takes one step in a wrong way. With it the core becomes a mutant, which the oracles
// of `ferry verify` must find.
//
// A mutant is a step and a bend, the kind of fault. Which bends apply to a step depends on its
// kind:
//
//            drop                other stream            delay                stale
//   record   never recorded      of another stream       -                    the record before
//   wait     no wait             another stream waits    after the next call  for the event before
//   copy     no copy             on another stream       after the next call  -
//   use      not recorded        for another stream      -                    -
//   memory   no events to await  from another pool       -                    -
//            (host return)       (reload or bring
//                                 allocate)
//   user     -                   -                    -                    the first one seen
//                                                                          is the current stream
// A record cannot come late, because its event is needed at once. A copy's event may be stale: that
// is the mutant of its record. shared/seam/rules.h mutates the decisions that are not calls.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/adaptors/forward.h"
#include "shared/seam/invariant.h"

namespace ferry {

enum class Bend : std::uint8_t { kDrop, kOtherStream, kDelay, kStale };
inline constexpr std::array<std::string_view, 4> kBendNames = {"drop", "other stream", "delay",
                                                               "stale"};
constexpr std::string_view name(Bend bend) { return kBendNames[static_cast<std::size_t>(bend)]; }

struct Mutation {
  Step step = Step::kUser;
  Bend bend = Bend::kDrop;
};

constexpr bool applies(Mutation mutation) {
  switch (info(mutation.step).kind) {
    case StepKind::kRecord:
      return mutation.bend != Bend::kDelay;
    case StepKind::kWait:
      return true;
    case StepKind::kCopy:
      // A transfer returns the tensor that it makes, so it can neither be dropped nor come late.
      if (mutation.step == Step::kReceive) return mutation.bend == Bend::kOtherStream;
      return mutation.bend != Bend::kStale;
    case StepKind::kUse:
      return mutation.bend == Bend::kDrop || mutation.bend == Bend::kOtherStream;
    case StepKind::kMemory:
      return (mutation.step == Step::kHostReturn && mutation.bend == Bend::kDrop) ||
             ((mutation.step == Step::kReloadAllocate || mutation.step == Step::kBringAllocate) &&
              mutation.bend == Bend::kOtherStream);
    case StepKind::kNone:
      return mutation.bend == Bend::kStale;
  }
  return false;
}

template <Device D>
class Bent : public Forward<D> {
 public:
  using Base = Forward<D>;
  using typename Base::Event;
  using typename Base::HostBuffer;
  using typename Base::Storage;
  using typename Base::Stream;
  using typename Base::Tensor;

  Bent(D upstream, std::optional<Mutation> mutation)
      : Base(std::move(upstream)), state_(std::make_shared<State>()) {
    invariant(!mutation || applies(*mutation), "a bend applies to its step");
    state_->mutation = mutation;
  }

  Stream current_stream() {
    const Stream now = Base::current_stream();
    if (!is(Step::kUser, Bend::kStale)) return now;
    if (!state_->first) state_->first = now;
    return *state_->first;
  }
  Event record(Step step, const Stream& stream) {
    if (is(step, Bend::kDrop)) return Event();
    const Stream on = is(step, Bend::kOtherStream) ? other(stream) : stream;
    const Event event = Base::record(step, on);
    catch_up();
    // Holding an event prevents the reuse of its number, so only this mutant holds one.
    if (!state_->mutation || state_->mutation->bend != Bend::kStale) return event;
    const Event before = put_latest(on, event);
    return is(step, Bend::kStale) ? before : event;
  }
  void wait(Step step, const Stream& stream, const Event& event) {
    if (is(step, Bend::kDrop)) return;
    if (is(step, Bend::kDelay)) {
      postpone([device = this->upstream(), step, stream, event]() mutable {
        device.wait(step, stream, event);
      });
      return;
    }
    Event wanted = event;
    if (is(step, Bend::kStale)) wanted = std::exchange(state_->waited, event);
    Base::wait(step, is(step, Bend::kOtherStream) ? other(stream) : stream, wanted);
  }
  Storage allocate(Step step, std::int64_t bytes, const Stream& stream) {
    return Base::allocate(step, bytes, is(step, Bend::kOtherStream) ? other(stream) : stream);
  }
  void record_use(Step step, const Storage& storage, const Stream& stream) {
    if (is(step, Bend::kDrop)) return;
    Base::record_use(step, storage, is(step, Bend::kOtherStream) ? other(stream) : stream);
  }
  Tensor transfer(Step step, const Tensor& tensor, Bent& to,
                  const Stream& stream) requires PipelineDevice<D> {
    if (is(step, Bend::kOtherStream)) {
      return Base::transfer(step, tensor, to, to.compute_stream());
    }
    return Base::transfer(step, tensor, to, stream);
  }
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept {
    catch_up();  // A postponed copy still needs the buffer.
    if (is(step, Bend::kDrop)) events = {};
    Base::release_host(step, std::move(host), events);
  }
  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream) {
    if (!is(step, Bend::kDrop)) {
      const HostBuffer* buffer = &host;
      copy(step, stream,
           [device = this->upstream(), step, storage, begin, buffer](const Stream& on) mutable {
             device.offload(step, storage, begin, *buffer, on);
           });
    }
  }
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream) {
    if (!is(step, Bend::kDrop)) {
      const HostBuffer* buffer = &host;
      copy(step, stream,
           [device = this->upstream(), step, storage, buffer](const Stream& on) mutable {
             device.reload(step, *buffer, storage, on);
           });
    }
  }

 private:
  struct State {
    std::optional<Mutation> mutation;
    std::vector<std::pair<Stream, Event>> latest;  // latest record on each stream
    Event waited;
    std::optional<Stream> first;  // the stream that was current at the first call
    std::function<void()> late;
  };

  bool is(Step step, Bend bend) const {
    return state_->mutation && state_->mutation->step == step && state_->mutation->bend == bend;
  }

  // Returns another stream: a lane for a compute stream, the other lane (or compute) for a lane.
  Stream other(const Stream& stream) {
    const Stream out = this->lane(Lane::kDeviceToHost);
    const Stream back = this->lane(Lane::kHostToDevice);
    if (stream == out) return stream == back ? this->current_stream() : back;
    return out;
  }

  // Returns the previous event of the stream, or a default one.
  Event put_latest(const Stream& stream, const Event& event) {
    for (auto& [on, known] : state_->latest) {
      if (on == stream) return std::exchange(known, event);
    }
    state_->latest.emplace_back(stream, event);
    return Event();
  }

  template <class Copy>
  void copy(Step step, const Stream& stream, Copy run) {
    if (is(step, Bend::kDelay)) {
      postpone([run, stream]() mutable { run(stream); });
    } else {
      run(is(step, Bend::kOtherStream) ? other(stream) : stream);
      catch_up();
    }
  }

  // Runs `late` after the next record or copy. The buffers of a postponed copy live until then.
  void postpone(std::function<void()>&& late) {
    catch_up();
    state_->late = std::move(late);
  }
  void catch_up() {
    if (const auto late = std::exchange(state_->late, nullptr)) late();
  }

  std::shared_ptr<State> state_;
};

}  // namespace ferry
