#include "verify/trials/try_wards.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/state/wards.h"
#include "verify/trials/state_world.h"

namespace ferry::verify {
namespace {

// A ward, and the contents that its next taker must find.
struct HeldWard {
  WardId id{};
  std::int64_t bytes = 0;
  std::uint64_t contents = 0;
};

class Training : private StateWorld {
 public:
  Training(std::uint64_t number, std::optional<Mutation> mutation);
  std::optional<Verdict> live();

 private:
  WardOptions draw_options();
  void add();
  void step();
  void visit(HeldWard& own);
  void visit_elsewhere(HeldWard& own);
  void update(HeldWard& own, const sim::Tensor& tensor);
  void expect_bounded();
  void end();

  const WardOptions options_;
  std::unique_ptr<Wards<Device>> wards_;
  std::vector<HeldWard> own_;
};

Training::Training(std::uint64_t number, std::optional<Mutation> mutation)
    : StateWorld(number), options_(draw_options()) {
  wards_ = std::make_unique<Wards<Device>>(device(mutation), options_);
}

WardOptions Training::draw_options() {
  WardOptions options;
  if (!draws_.one_in(5)) options.ahead_bytes = kBounds[any(kBounds.size())];
  if (!draws_.one_in(5)) options.behind_bytes = kBounds[any(kBounds.size())];
  return options;
}

std::optional<Verdict> Training::live() {
  for (int wards = draws_.in(1, 7); wards > 0; --wards) add();
  wards_->end_step();
  for (int steps = draws_.in(2, 6); steps > 0 && !verdict_; --steps) step();
  end();
  return last_verdict();
}

void Training::add() {
  const sim::Tensor state = world_.make(any_size());
  HeldWard own{.id = {}, .bytes = state->storage->bytes, .contents = world_.contents(state)};
  insist([&] { own.id = wards_->add(state->storage); });
  own_.push_back(own);
  if (draws_.one_in(8)) {
    wards_->give_back(own.id, false);  // it stays where it is: the host has no bytes of it
  } else {
    update(own_.back(), state);
  }
}

void Training::step() {
  if (draws_.one_in(6)) std::swap(own_[any(own_.size())], own_.front());
  if (draws_.one_in(3)) wards_->bring_ahead();
  for (HeldWard& own : own_) {
    if (draws_.one_in(2)) make_and_drop();
    if (draws_.one_in(10)) continue;
    if (!odds_.host_computes && draws_.one_in(6)) {
      visit_elsewhere(own);
    } else {
      visit(own);
    }
    if (draws_.one_in(10)) visit(own_[any(own_.size())]);
    if (!odds_.host_computes && draws_.one_in(8)) world_.turn_to_other_stream();
    expect_bounded();
  }
  wards_->end_step(draws_.one_in(4));
  if (draws_.one_in(8) && own_.size() > 1) {
    wards_->remove(own_.back().id);
    own_.pop_back();
  }
}

void Training::visit(HeldWard& own) {
  sim::Storage storage;
  insist([&] { storage = wards_->take(own.id); });
  const sim::Tensor tensor = on(storage);
  if (world_.contents(tensor) != own.contents) {
    complain(Oracle::kValue, "a ward has other contents than were written last");
  }
  use(tensor, false);
  if (!draws_.one_in(5)) return update(own, tensor);
  const bool writes = draws_.one_in(2);
  if (writes) use(tensor, true);
  const std::uint64_t here = world_.contents(tensor);
  storage.reset();
  wards_->give_back(own.id, writes);
  if (wards_->place(own.id) == WardPlace::kKept) own.contents = here;
}

// On another stream, for which the current one does not wait.
void Training::visit_elsewhere(HeldWard& own) {
  sim::Machine& machine = world_.machine();
  const StreamId here = machine.current_stream();
  const StreamId other = machine.compute_stream(here == machine.compute_stream(0) ? 1 : 0);
  machine.wait(Step::kUser, other, machine.record(Step::kUser, here));
  {
    const sim::SimDevice::StreamScope scope(sim::SimDevice(machine), other);
    visit(own);
  }
  if (wards_->place(own.id) == WardPlace::kKept) {  // the next one to take it does not wait
    machine.wait(Step::kUser, here, machine.record(Step::kUser, other));
  }
}

void Training::update(HeldWard& own, const sim::Tensor& tensor) {
  use(tensor, true);
  own.contents = world_.contents(tensor);
  insist([&] {
    if (wards_->place(own.id) == WardPlace::kTaken) wards_->written(own.id);
  });
}

void Training::expect_bounded() {
  const std::int64_t largest = kSizes.back();
  const std::int64_t eighth = wards_->statistics().host_bytes / kWardParts;
  const std::int64_t ahead = options_.ahead_bytes.value_or(eighth);
  std::int64_t most = std::max(options_.behind_bytes.value_or(eighth), largest);
  if (ahead > 0) most += std::max(ahead, largest);
  for (const HeldWard& own : own_) {
    if (wards_->place(own.id) == WardPlace::kKept) most += own.bytes;
  }
  if (!fails_ && wards_->statistics().device_bytes > most) {
    complain(Oracle::kBound, "more bytes of wards are on the device than the bounds allow");
  }
}

void Training::end() {
  others_.clear();
  wards_.reset();
}

}  // namespace

std::optional<Verdict> try_wards(std::uint64_t number, std::optional<Mutation> mutation) {
  return Training(number, mutation).live();
}

}  // namespace ferry::verify
