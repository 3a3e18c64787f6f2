#include "verify/trials/try_wards.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "shared/adaptors/observed.h"
#include "shared/state/wards.h"
#include "sim/choices/draws.h"
#include "verify/trials/odd_device.h"
#include "verify/trials/saves_world.h"

namespace ferry::verify {
namespace {

using Device = Faulty<Bent<OddDevice>>;

constexpr std::int64_t kKiB = 1024;
// Few sizes, so that blocks are reused by others.
constexpr std::array<std::int64_t, 3> kSizes = {64 * kKiB, 1024 * kKiB, 2048 * kKiB};

// The numbers of kernels on wards; the world's own begin at 0.
constexpr std::uint64_t kFirstKernel = std::uint64_t{1} << 32;

// A ward, and the contents that its next taker must find.
struct HeldWard {
  WardId id{};
  std::int64_t bytes = 0;
  std::uint64_t contents = 0;
};

class Nobody final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp&) override {}
};

class Training {
 public:
  Training(std::uint64_t number, std::optional<Mutation> mutation);
  std::optional<Verdict> live();

 private:
  WardOptions draw_options();
  std::shared_ptr<FaultPoint> draw_fault();
  void add();
  void step();
  void visit(HeldWard& own);
  void visit_elsewhere(HeldWard& own);
  void update(HeldWard& own, const sim::Tensor& tensor);
  void use(const sim::Tensor& tensor, bool writes);
  void make_and_drop();
  void expect_bounded();
  void end();

  // Calls until the call succeeds. One call of the device fails at most, and one wait of the host.
  template <class Call>
  void insist(const Call& call) {
    for (int failures = 0; failures < 2; ++failures) {
      try {
        return call();
      } catch (const InjectedFault&) {
      } catch (const CopyFailed&) {
      }
    }
    call();
  }
  sim::Tensor on(const sim::Storage& storage) {
    const auto window = std::make_shared<const sim::Window>(
        sim::Window{contiguous_layout(DType::kU8, {storage->bytes}), {0, storage->bytes}});
    return sim::make_tensor(storage, {window, 0}, world_.machine().new_version());
  }
  std::size_t any(std::size_t count) {
    return static_cast<std::size_t>(draws_.in(0, static_cast<int>(count)));
  }
  void complain(Oracle oracle, const std::string& what) {
    if (!verdict_) verdict_ = Verdict{oracle, what};
  }

  choices::Draws draws_;
  Odds odds_;
  Nobody nobody_;
  SavesWorld world_;
  const WardOptions options_;
  const bool fails_;
  std::unique_ptr<Wards<Device>> wards_;
  std::vector<HeldWard> own_;
  std::vector<sim::Tensor> others_;
  std::uint64_t kernels_ = 0;
  std::optional<Verdict> verdict_;
};

Training::Training(std::uint64_t number, std::optional<Mutation> mutation)
    : draws_(number), world_(nobody_), options_(draw_options()), fails_(draws_.one_in(4)) {
  odds_.host_computes = draws_.one_in(6);
  if (odds_.host_computes && fails_ && draws_.one_in(2)) odds_.fails_in = draws_.in(0, 20);
  const Bent<OddDevice> bent(OddDevice(sim::SimDevice(world_.machine()), odds_), mutation);
  wards_ = std::make_unique<Wards<Device>>(Device(bent, draw_fault()), options_);
}

WardOptions Training::draw_options() {
  constexpr std::array<std::int64_t, 4> kBounds = {0, 1024 * kKiB, 3072 * kKiB, 16 * 1024 * kKiB};
  WardOptions options;
  if (!draws_.one_in(5)) options.ahead_bytes = kBounds[any(kBounds.size())];
  if (!draws_.one_in(5)) options.behind_bytes = kBounds[any(kBounds.size())];
  return options;
}

std::shared_ptr<FaultPoint> Training::draw_fault() {
  constexpr int kFirst = static_cast<int>(Step::kBringAllocate);
  const int drawn = draws_.in(kFirst, static_cast<int>(kSteps) + 2);
  Step step = static_cast<Step>(drawn);
  if (drawn == static_cast<int>(kSteps)) step = Step::kHostAllocate;
  if (drawn > static_cast<int>(kSteps)) step = Step::kAbandon;
  const int nth = draws_.in(0, 8);
  if (fails_) return std::make_shared<FaultPoint>(step, nth);
  return std::make_shared<FaultPoint>([](Step) { return false; });
}

std::optional<Verdict> Training::live() {
  for (int wards = draws_.in(1, 7); wards > 0; --wards) add();
  wards_->end_step();
  for (int steps = draws_.in(2, 6); steps > 0 && !verdict_; --steps) step();
  end();
  return verdict_;
}

void Training::add() {
  const sim::Tensor state = world_.make(kSizes[any(kSizes.size())]);
  HeldWard own{.id = {}, .bytes = state->storage->bytes, .contents = world_.contents(state)};
  insist([&] { own.id = wards_->add(state->storage); });
  own_.push_back(own);
  if (draws_.one_in(8)) {
    wards_->give_back(own.id);  // it stays where it is: the host has no bytes of it
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
  if (draws_.one_in(2)) use(tensor, true);
  const std::uint64_t here = world_.contents(tensor);
  storage.reset();
  wards_->give_back(own.id);
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

// A kernel on the current stream. The program does not tell the pool of it: wards do.
void Training::use(const sim::Tensor& tensor, bool writes) {
  const Range range = sim::range_of(tensor);
  const std::span<const Range> written(&range, writes ? 1 : 0);
  world_.machine().kernel("ward", kFirstKernel + kernels_++, {&range, 1}, written, {100, 0});
}

// Makes a tensor of a ward's size and drops it: its block is reused while its last work may still
// run.
void Training::make_and_drop() {
  others_.push_back(world_.make(kSizes[any(kSizes.size())]));
  world_.read(others_.back());
  if (draws_.one_in(2)) others_.clear();
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
  if (verdict_) return;
  verdict_ = world_.hazard();
  if (!verdict_) verdict_ = world_.leak();
}

}  // namespace

std::optional<Verdict> try_wards(std::uint64_t number, std::optional<Mutation> mutation) {
  return Training(number, mutation).live();
}

}  // namespace ferry::verify
