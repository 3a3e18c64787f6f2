#include "verify/trials/try_exempt.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "shared/offload/offloader.h"
#include "sim/gpu/machine.h"
#include "verify/oracles/hazards.h"
#include "verify/trials/odd_device.h"
#include "verify/trials/script.h"

namespace ferry::verify {
namespace {

constexpr std::int64_t kBytes = 4096;
constexpr int kLasting = 20;
constexpr int kPassing = 120;
// This many entries of dead tensors may be left, in addition to the living.
constexpr std::int64_t kFew = 64;

struct NoWatch final : sim::TaskWatch {
  void task_began() override {}
  void task_ended() noexcept override {}
};

// Exempts the tensors of a module that stays, and those of many modules that do not.
class Exempting {
 public:
  explicit Exempting(const Rules& rules)
      : offloader_(OddDevice(sim::SimDevice(machine_), odds_), ScriptAutograd(script_), {}, rules) {
  }
  std::optional<Verdict> run() {
    for (int i = 0; i < kLasting; ++i) exempt(lasting_.emplace_back(make()));
    for (int i = 0; i < kPassing; ++i) {
      exempt(make());
      if (auto wrong = remembers_too_much()) return wrong;
    }
    for (int i = 0; i < kPassing; ++i) move(lasting_[static_cast<std::size_t>(i % kLasting)]);
    if (auto wrong = remembers_too_much()) return wrong;
    // Each check of an entry must be paid for by an entry that was added since the last pass.
    if (odds_.uniques > 2 * (kLasting + kPassing) + kPassing) {
      return Verdict{Oracle::kAccounts, "it looks for dead tensors too often"};
    }
    if (auto wrong = moves_what_it_must()) return wrong;
    look_while_another_thread_lets_go();
    return judge_hazards(machine_.hazards());
  }

 private:
  sim::Tensor make() {
    static const auto window = std::make_shared<const sim::Window>(
        sim::Window{contiguous_layout(DType::kU8, {kBytes}), {0, kBytes}});
    return sim::make_tensor(machine_.allocate(kBytes, machine_.current_stream()), {window, 0},
                            machine_.new_version());
  }
  void exempt(const sim::Tensor& tensor) {
    counters_.push_back(tensor->version);
    offloader_.exempt(tensor);
  }
  // Gives the tensor another storage and packs it, and packs x.data, which shares only the new
  // storage.
  void move(const sim::Tensor& tensor) {
    tensor->storage = make()->storage;
    offloader_.hooks()->pack(tensor);
    offloader_.hooks()->pack(
        sim::make_tensor(tensor->storage, tensor->layout, machine_.new_version()));
  }
  // Makes a tensor as in inference mode: it counts no writes, and has a version counter of its own.
  sim::Tensor make_without_counter() {
    const sim::Tensor tensor = make();
    tensor->version = std::make_shared<sim::VersionCounter>();
    return tensor;
  }
  // Checks that exempt tensors stay, with or without a counter and a storage, and that others move.
  std::optional<Verdict> moves_what_it_must() {
    const sim::Tensor without_counter = make_without_counter();
    const sim::Tensor without_storage = make();
    const sim::Storage storage = std::exchange(without_storage->storage, nullptr);
    offloader_.exempt(without_counter);
    offloader_.exempt(without_storage);
    without_storage->storage = storage;
    offloader_.hooks()->pack(without_counter);
    offloader_.hooks()->pack(without_storage);
    if (offloader_.statistics().offloaded_count > 0) {
      return Verdict{Oracle::kAccounts, "an exempt tensor moved"};
    }
    offloader_.hooks()->pack(make_without_counter());
    if (offloader_.statistics().offloaded_count == 1) return std::nullopt;
    return Verdict{Oracle::kAccounts, "a tensor without a counter was mistaken for another one"};
  }
  // If the pass becomes the last owner of a storage, it must drop it without holding the lock.
  void look_while_another_thread_lets_go() {
    sim::Tensor tensor = make();
    offloader_.exempt(tensor);
    odds_.let_go = std::move(tensor);
    for (int i = 0; odds_.let_go && i < 2 * kPassing; ++i) offloader_.exempt(make());
    odds_.let_go.reset();
  }
  // A tensor has two entries, for its counter and its storage. At the last pass, one more was
  // alive.
  std::optional<Verdict> remembers_too_much() const {
    const auto counters = std::count_if(counters_.begin(), counters_.end(),
                                        [](const auto& each) { return !each.expired(); });
    const std::int64_t entries = counters + odds_.weak_handles();
    const auto living = static_cast<std::int64_t>(2 * (lasting_.size() + 1));
    if (entries <= 2 * living + kFew) {
      return std::nullopt;
    }
    return Verdict{Oracle::kLeak,
                   "it remembers " + std::to_string(entries) + " entries for exempt tensors"};
  }

  sim::Machine machine_{sim::MachineOptions{}};
  NoWatch watch_;
  Odds odds_;
  Script script_{watch_};
  Offloader<OddDevice, ScriptAutograd> offloader_;
  std::vector<sim::Tensor> lasting_;
  std::vector<std::weak_ptr<sim::VersionCounter>> counters_;
};

}  // namespace

std::optional<Verdict> try_exempt(const Rules& rules) { return Exempting(rules).run(); }

}  // namespace ferry::verify
