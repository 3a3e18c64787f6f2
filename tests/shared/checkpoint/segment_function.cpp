#include "tests/shared/checkpoint/segment_function.h"

#include <exception>
#include <stdexcept>

#include "shared/checkpoint/errors.h"
#include "tests/sim/support/script.h"

namespace ferry::test {

// `aside` is on the segment's stream, and read on the others. The function drops it once it has
// waited for these.
void SegmentFunction::wait_for_readers() {
  for (std::uint32_t stream = 1; stream < kSegmentStreams; ++stream) wait(stream, 0);
}

void SegmentFunction::run_first(const Tensor& input, Saves& saves,
                                const std::function<void()>& before,
                                const std::function<void(const Tensor&)>& saved) {
  const Tensor aside = make_aside(input);
  for (std::size_t i = 0; i < drawn_.shape.packs; ++i) {
    before();
    const Tensor tensor = make_saved(i, aside, segment_bytes(i));
    save(i, tensor, saves);
    saved(tensor);
  }
  before();
  wait_for_readers();
}

void SegmentFunction::run_again(const Tensor& input) {
  const SegmentShape& shape = drawn_.shape;
  Saves again;
  const Tensor aside = make_aside(input);
  std::size_t saves = shape.packs;
  if (shape.deviation == Deviation::kFewer) --saves;
  if (shape.deviation == Deviation::kMore) ++saves;
  for (std::size_t i = 0; i < saves; ++i) {
    const bool here = i == shape.place;
    if (here && shape.deviation == Deviation::kRaises) {
      wait_for_readers();
      throw std::runtime_error(kSegmentRaises);
    }
    const bool other = here && shape.deviation == Deviation::kOtherSize;
    ++made_again_;
    const Tensor tensor = make_saved(i, aside, (other ? 2 : 1) * segment_bytes(i));
    if (shape.deviation < Deviation::kMore || shape.deviation == Deviation::kRaises) {
      save(i, tensor, again);
    } else if (!save_deviating(i, tensor, aside, again)) {
      return;
    }
  }
  wait_for_readers();
}

// False if the function returns.
bool SegmentFunction::save_deviating(std::size_t ordinal, const Tensor& tensor, const Tensor& aside,
                                     Saves& again) {
  const Deviation deviation = drawn_.shape.deviation;
  try {
    save(ordinal, tensor, again);
    return true;
  } catch (const CheckpointError&) {
    wait_for_readers();
    throw;
  } catch (const std::exception&) {
    if (deviation == Deviation::kReturns) return false;
    if (deviation == Deviation::kOwnError) throw std::runtime_error("an interpreter's");
    if (deviation != Deviation::kGoesOn) throw;
  }
  ++made_again_;
  const Tensor more = make_saved(ordinal, aside, segment_bytes(ordinal));
  wait_for_readers();
  save(ordinal, more, again);
  return true;
}

SegmentFunction::Tensor SegmentFunction::make_saved(std::size_t ordinal, const Tensor& aside,
                                                    std::int64_t bytes) {
  if (world_.state.ops)
    world_.state.ops->push_back(segment_op(ordinal, bytes != segment_bytes(ordinal)));
  const std::uint32_t stream = drawn_.stream(ordinal);
  if (stream != 0) wait(0, stream);
  return make(stream, bytes, aside);
}

void SegmentFunction::save(std::size_t ordinal, const Tensor& tensor, Saves& into) {
  const sim::SimDevice::StreamScope on(world_.device(), stream_of(drawn_.stream(ordinal)));
  into.push_back(world_.autograd.hooks().pack(tensor));
  if (!into.back()) world_.object("error", "a segment's hooks let go of a saved tensor");
}

void SegmentFunction::wait(std::uint32_t from, std::uint32_t to) {
  sim::Machine& machine = world_.machine;
  machine.wait(Step::kUser, stream_of(to), machine.record(Step::kUser, stream_of(from)));
}

StreamId SegmentFunction::stream_of(std::uint32_t stream) {
  sim::Machine& machine = world_.machine;
  return stream == 0 ? machine.current_stream() : machine.compute_stream(stream);
}

// Made on the stream, of what is read there.
SegmentFunction::Tensor SegmentFunction::make(std::uint32_t stream, std::int64_t bytes,
                                              const Tensor& of) {
  const sim::SimDevice::StreamScope on(world_.device(), stream_of(stream));
  Tensor made = make_bytes(world_.machine, bytes);
  const Range to = sim::range_of(made);
  const Range from = of ? sim::range_of(of) : Range{};
  world_.machine.kernel("make", world_.next_number(), {&from, of ? 1u : 0u}, {&to, 1}, 1);
  return made;
}

}  // namespace ferry::test
