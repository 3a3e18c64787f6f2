// What random trainings with wards have in common (try_wards.cpp, try_weights.cpp): a simulated
// machine, a device that bends or fails one call, other tensors, and the first verdict.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "shared/adaptors/observed.h"
#include "sim/choices/draws.h"
#include "verify/trials/odd_device.h"
#include "verify/trials/saves_world.h"

namespace ferry::verify {

class StateWorld {
 protected:
  using Device = Faulty<Bent<OddDevice>>;

  static constexpr std::int64_t kKiB = 1024;
  // Few sizes, so that blocks are reused by others.
  static constexpr std::array<std::int64_t, 3> kSizes = {64 * kKiB, 1024 * kKiB, 2048 * kKiB};
  static constexpr std::array<std::int64_t, 4> kBounds = {0, 1024 * kKiB, 3072 * kKiB,
                                                          16 * 1024 * kKiB};

  explicit StateWorld(std::uint64_t number)
      : draws_(number), world_(nobody_), fails_(draws_.one_in(4)) {
    odds_.host_computes = draws_.one_in(6);
    if (odds_.host_computes && fails_ && draws_.one_in(2)) odds_.fails_in = draws_.in(0, 20);
  }
  StateWorld(const StateWorld&) = delete;
  StateWorld& operator=(const StateWorld&) = delete;
  ~StateWorld() = default;

  Device device(std::optional<Mutation> mutation) {
    const Bent<OddDevice> bent(OddDevice(sim::SimDevice(world_.machine()), odds_), mutation);
    return Device(bent, draw_fault());
  }

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

  std::size_t any(std::size_t count) {
    return static_cast<std::size_t>(draws_.in(0, static_cast<int>(count)));
  }
  std::int64_t any_size() { return kSizes[any(kSizes.size())]; }

  sim::Tensor on(const sim::Storage& storage) {
    const auto window = std::make_shared<const sim::Window>(
        sim::Window{contiguous_layout(DType::kU8, {storage->bytes}), {0, storage->bytes}});
    return sim::make_tensor(storage, {window, 0}, world_.machine().new_version());
  }

  // A kernel on the current stream. The program does not tell the pool of it: wards do.
  void use(const sim::Tensor& tensor, bool writes) {
    const Range range = sim::range_of(tensor);
    const std::span<const Range> written(&range, writes ? 1 : 0);
    world_.machine().kernel("ward", kFirstKernel + kernels_++, {&range, 1}, written, {100, 0});
  }

  // Makes a tensor of a ward's size and drops it: its block is reused while its last work may still
  // run.
  void make_and_drop() {
    others_.push_back(world_.make(any_size()));
    world_.read(others_.back());
    if (draws_.one_in(2)) others_.clear();
  }

  void complain(Oracle oracle, const std::string& what) {
    if (!verdict_) verdict_ = Verdict{oracle, what};
  }

  // Call it when nothing is used any more.
  std::optional<Verdict> last_verdict() {
    if (!verdict_) verdict_ = world_.hazard();
    if (!verdict_) verdict_ = world_.leak();
    return verdict_;
  }

 private:
  // The numbers of kernels on wards; the world's own begin at 0.
  static constexpr std::uint64_t kFirstKernel = std::uint64_t{1} << 32;

  class Nobody final : public StreamOpConsumer {
   public:
    void operator()(const StreamOp&) override {}
  };

  std::shared_ptr<FaultPoint> draw_fault() {
    constexpr int kFirst = static_cast<int>(Step::kBringAllocate);
    const int drawn = draws_.in(kFirst, static_cast<int>(kSteps) + 2);
    Step step = static_cast<Step>(drawn);
    if (drawn == static_cast<int>(kSteps)) step = Step::kHostAllocate;
    if (drawn > static_cast<int>(kSteps)) step = Step::kAbandon;
    const int nth = draws_.in(0, 8);
    if (fails_) return std::make_shared<FaultPoint>(step, nth);
    return std::make_shared<FaultPoint>([](Step) { return false; });
  }

  Nobody nobody_;

 protected:
  choices::Draws draws_;
  Odds odds_;
  SavesWorld world_;
  const bool fails_;
  std::vector<sim::Tensor> others_;
  std::optional<Verdict> verdict_;

 private:
  std::uint64_t kernels_ = 0;
};

}  // namespace ferry::verify
