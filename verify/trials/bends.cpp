#include "verify/trials/bends.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "verify/trials/noted_device.h"

namespace ferry::verify {
namespace {

using choices::Draws;
using BentDevice = Bent<NotedDevice>;

constexpr int kCompute = 1, kComputeThere = 9;
constexpr int kCalls = 16;

// A call as the test makes it. Waits name an event by the number of its record; -1: none.
struct Given {
  Step step = Step::kUser;
  int stream = 0;
  int record = -1;
  int what = 0;
};

// Works out the calls that a device with the mutation must make.
class Expected {
 public:
  Expected(std::optional<Mutation> mutation, int out, int back)
      : mutation_(mutation), out_(out), back_(back) {}

  void give(const Given& given) {
    const auto is = [&](Bend bend) {
      return mutation_ && mutation_->step == given.step && mutation_->bend == bend;
    };
    NotedCall call{info(given.step).kind, given.step, given.stream, 0, given.what};
    if (is(Bend::kOtherStream)) call.stream = other(given);
    if (call.kind == StepKind::kWait) call.event = event(given.record);
    if (call.kind == StepKind::kWait || call.kind == StepKind::kRecord) call.what = 0;
    if (given.step == Step::kHostReturn) {
      // A delayed host return must come before the bytes are gone.
      call.event = is(Bend::kDrop) ? 0 : 1;
      come();
    } else if (is(Bend::kDrop)) {
      if (call.kind == StepKind::kRecord) events_.push_back(0);
      return;
    }
    if (is(Bend::kDelay)) {
      come();
      late_ = call;
      return;
    }
    if (call.kind == StepKind::kWait && is(Bend::kStale)) {
      std::swap(call.event, before_);
    }
    if (call.kind == StepKind::kRecord) record(call, is(Bend::kStale));
    calls.push_back(call);
    const bool carries = call.kind == StepKind::kRecord || call.kind == StepKind::kCopy;
    if (carries && given.step != Step::kReceive) come();
  }
  std::vector<NotedCall> calls;

 private:
  // Makes the delayed call, once.
  void come() {
    if (late_) calls.push_back(*std::exchange(late_, std::nullopt));
  }
  int event(int record) const { return record < 0 ? 0 : events_[static_cast<std::size_t>(record)]; }
  int other(const Given& given) const {
    if (given.step == Step::kReceive) return kComputeThere;
    if (given.stream != out_) return out_;
    return back_ == out_ ? kCompute : back_;
  }
  // A stale record returns the event of the previous record on its stream.
  void record(NotedCall& call, bool stale) {
    int latest = 0;
    for (const NotedCall& made : calls) {
      if (made.kind == StepKind::kRecord && made.stream == call.stream) latest = made.event;
    }
    call.event = ++made_;
    events_.push_back(stale ? latest : call.event);
  }

  const std::optional<Mutation> mutation_;
  const int out_, back_;
  std::vector<int> events_;  // returned by the records, in order
  int made_ = 0;
  int before_ = 0;
  std::optional<NotedCall> late_;
};

void give(BentDevice& device, BentDevice& there, const Given& given, NotedDevice::HostBuffer& host,
          std::vector<int>& events) {
  const int event = given.record < 0 ? 0 : events[static_cast<std::size_t>(given.record)];
  host.number = given.what;
  switch (info(given.step).kind) {
    case StepKind::kRecord:
      events.push_back(device.record(given.step, given.stream));
      return;
    case StepKind::kWait:
      return device.wait(given.step, given.stream, event);
    case StepKind::kUse:
      return device.record_use(given.step, given.what, given.stream);
    case StepKind::kCopy:
      if (given.step == Step::kReceive) {
        device.transfer(given.step, given.what, there, given.stream);
      } else if (given.step == Step::kOffload) {
        device.offload(given.step, 0, 0, host, given.stream);
      } else {
        device.reload(given.step, host, 0, given.stream);
      }
      return;
    case StepKind::kMemory:
      if (given.step == Step::kHostReturn) {
        return device.release_host(given.step, std::move(host), std::array{event});
      }
      device.allocate(given.step, given.what, given.stream);
      return;
    case StepKind::kNone:
      return;
  }
}

std::optional<Mutation> draw_mutation(Draws& draws) {
  if (draws.one_in(16)) return std::nullopt;
  for (;;) {
    const Mutation mutation{static_cast<Step>(draws.in(1, static_cast<int>(kSteps))),
                            static_cast<Bend>(draws.in(0, 4))};
    if (applies(mutation)) return mutation;
  }
}

// Makes a random call. Host bytes are allocated elsewhere, and that step has no mutant.
Given draw_call(Draws& draws, std::optional<Mutation> mutation, int lane, int number, int records) {
  Given given;
  do {
    given.step = static_cast<Step>(draws.in(1, static_cast<int>(kSteps)));
  } while (given.step == Step::kHostAllocate);
  if (mutation && draws.one_in(2)) given.step = mutation->step;
  given.stream = draws.one_in(2) ? draws.in(2, 2 + lane) : kCompute;
  if (given.step == Step::kHostReturn) given.stream = 0;
  given.what = number;
  if (records > 0) given.record = draws.in(0, records);
  return given;
}

}  // namespace

std::optional<Verdict> judge_bend(Draws& draws) {
  const std::optional<Mutation> mutation = draw_mutation(draws);
  const int lanes = draws.in(1, 3), back = 1 + lanes;
  const NotedDevice noted(kCompute, 2, back);
  BentDevice device(noted, mutation), there(NotedDevice(kComputeThere, 2, back), mutation);
  Expected expected(mutation, 2, back);
  std::vector<int> events;
  // The host bytes of a copy must live until the copy is made.
  std::array<NotedDevice::HostBuffer, kCalls> hosts;
  for (int i = 0; i < kCalls; ++i) {
    const Given given = draw_call(draws, mutation, lanes, i + 1, static_cast<int>(events.size()));
    give(device, there, given, hosts[static_cast<std::size_t>(i)], events);
    expected.give(given);
  }
  if (noted.calls() == expected.calls) return std::nullopt;
  std::string words = "a device without a mutation changed a call";
  if (mutation) {
    words = "`" + std::string(name(mutation->step)) + "` with the bend `" +
            std::string(name(mutation->bend)) + "` makes other calls than it should";
  }
  return Verdict{Oracle::kException, words};
}

}  // namespace ferry::verify
