// Every rule of offloading, on the CUDA device over the virtual GPU with LibTorch's own autograd: a
// mutant that has not the rule is caught, or listed with the reason why it cannot show here.
//
// Rules that order work are broken under the random graphs, whose bits and log tell. Of the others
// each has a case of its own, which is true where the core does it right.
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/real/cuda_autograd/offload_trial.h"
#include "tests/real/mutant_hunt.h"
#include "tests/real/offload_mutants.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kElements = 1024;
constexpr std::int64_t kBytes = kElements * 4;
constexpr std::int64_t kLarge = 512 * kElements;  // of which a small part moves alone

// Moves each tensor at the next pack, and brings it back when it is asked for.
CoreOptions at_once() {
  CoreOptions options;
  options.min_bytes = 1;
  options.window_bytes = 0;
  options.prefetch_bytes = 0;
  options.hold_bytes = 0;
  return options;
}

class Bench {
 public:
  using Device = Labelled<CudaDevice>;

  explicit Bench(Rules rules, CoreOptions options = at_once())
      : world_(vgpu::Tempo::kMixed, 3),
        offloader_(Device(CudaDevice({.index = 0})), TorchAutograd(), std::move(options), rules) {}

  // Runs with the offloader's hooks.
  template <class Function>
  auto under(Function function) {
    TorchAutograd autograd;
    const HooksGuard<TorchAutograd> guard(autograd, offloader_.hooks());
    return function();
  }
  void exempt(const torch::Tensor& tensor) { offloader_.exempt(tensor); }
  OffloadStatistics counts() const { return offloader_.statistics(); }
  bool empty() const { return soon_empty(offloader_); }
  // And nobody objects to the order.
  bool has(const torch::Tensor& found, const torch::Tensor& expected) const {
    return found.defined() && found.cpu().equal(expected.cpu()) && hazard(world_).empty();
  }

 private:
  VirtualWorld world_;
  Offloader<Device, TorchAutograd> offloader_;
};

torch::Tensor leaf(std::int64_t elements = kElements, c10::Device device = kGpu) {
  return torch::linspace(-1, 1, elements, torch::device(device)).requires_grad_();
}
// Saved, so that what was saved before it leaves.
torch::Tensor next() { return leaf(2 * kElements).cos(); }
torch::Tensor gradient(const torch::Tensor& y, const torch::Tensor& x, bool retain = false) {
  return torch::autograd::grad({y.sum()}, {x}, {}, retain)[0];
}

bool each_version_has_a_copy(Rules rules) {
  Bench bench(rules);
  const torch::Tensor root = leaf();
  torch::Tensor before, after;
  bench.under([&] {
    torch::Tensor x = root * 1;
    before = x.sin();
    x.add_(1);
    after = x.cos();
  });
  return bench.has(gradient(after, root), -(root.detach() + 1).sin());
}

// The larger one ends within the pool's segment, so that a mutant reads wrongly and does not crash.
bool a_part_does_not_serve_a_larger_one(Rules rules) {
  Bench bench(rules);
  const torch::Tensor root = leaf(kLarge);
  torch::Tensor part, larger;
  bench.under([&] {
    torch::Tensor x = root * 1;
    part = x.narrow(0, 0, kElements).sin();
    larger = x.narrow(0, 0, 2 * kElements).cos();
    x.reset();
    next();
  });
  const torch::Tensor expected = -root.detach().narrow(0, 0, 2 * kElements).sin();
  return bench.has(gradient(larger, root).narrow(0, 0, 2 * kElements), expected);
}

bool what_is_saved_twice_moves_once(Rules rules) {
  Bench bench(rules);
  const torch::Tensor root = leaf();
  torch::Tensor y;
  bench.under([&] {
    const torch::Tensor x = root * 1;
    y = x.sin() + x.cos();
  });
  return bench.counts().offloaded_count == 1 && bench.counts().shared == 1;
}

bool what_is_held_serves_the_other_save(Rules rules) {
  CoreOptions options = at_once();
  options.hold_bytes = kUnlimited;
  Bench bench(rules, options);
  const torch::Tensor root = leaf();
  torch::Tensor y;
  bench.under([&] {
    const torch::Tensor x = root * 1;
    y = x.sin() + x.cos();
    next();
  });
  gradient(y, root);
  return bench.counts().reloaded_count == 1 && bench.counts().target_hits == 1;
}

bool what_was_written_is_refused(Rules rules) {
  Bench bench(rules);
  const torch::Tensor root = leaf();
  torch::Tensor x, y;
  bench.under([&] {
    x = root * 1;
    y = x.sin();
  });
  x.detach().add_(1);
  try {
    gradient(y, root);
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

bool what_is_exempt_stays(Rules rules) {
  Bench bench(rules);
  const torch::Tensor w = leaf();
  bench.exempt(w);
  bench.under([&] { return leaf() * w; });
  return bench.counts().offloaded_count == 1 && bench.counts().kept == 1;
}

bool what_is_kept_already_stays(Rules rules) {
  CoreOptions options = at_once();
  options.offload = {false, true};
  Bench bench(rules, options);
  const torch::Tensor root = leaf();
  const torch::Tensor y = bench.under([&] { return root.sin() + root.cos(); });
  return bench.counts().offloaded_count == 0;
}

bool another_devices_tensor_stays(Rules rules) {
  const c10::Device other(c10::DeviceType::CUDA, 1);
  Bench bench(rules);
  const torch::Tensor root = leaf(kElements, other);
  const torch::Tensor y = bench.under([&] { return root.sin(); });
  return bench.counts().offloaded_count == 0 && bench.has(gradient(y, root), root.detach().cos());
}

bool a_part_moves_alone(Rules rules) {
  Bench bench(rules);
  const torch::Tensor root = leaf(kLarge);
  const torch::Tensor y = bench.under([&] { return root.narrow(0, 0, kElements).sin(); });
  return bench.counts().offloaded_bytes == kBytes;
}

bool what_is_still_there_is_not_brought(Rules rules) {
  Bench bench(rules);
  const torch::Tensor root = leaf();
  const torch::Tensor x = root * 1;  // kept by the program
  torch::Tensor y;
  bench.under([&] {
    y = x.sin();
    next();
  });
  return bench.has(gradient(y, root), x.detach().cos()) && bench.counts().reloaded_count == 0;
}

// x.data = other: x has its version counter still, and the other bytes lie where the first did.
bool another_storage_at_the_address_is_another(Rules rules) {
  Bench bench(rules);
  torch::Tensor x = torch::full({kElements}, 3.0, torch::device(kGpu));
  const torch::Tensor w = leaf();
  const void* const address = x.data_ptr();
  torch::Tensor first, second;
  bench.under([&] {
    first = x * w;
    next();
    x.set_data(torch::empty({0}, x.options()));
    const torch::Tensor other = torch::full({kElements}, 7.0, x.options());
    EXPECT_EQ(other.data_ptr(), address) << "the case is of no use";
    x.set_data(other);
    second = x * w;
    x.reset();
    next();
  });
  return bench.has(gradient(second, w), torch::full({kElements}, 7.0));
}

torch::Tensor chain(const torch::Tensor& root, int ops) {
  torch::Tensor x = root;
  for (int i = 0; i < ops; ++i) x = (x * 1).sin();
  return x;
}

bool the_window_is_bounded(Rules rules) {
  CoreOptions options = at_once();
  options.window_bytes = 2 * kBytes;
  Bench bench(rules, options);
  const torch::Tensor root = leaf();
  const torch::Tensor y = bench.under([&] { return chain(root, 8); });
  return bench.counts().forward_stash_peak_bytes <= 2 * kBytes;
}

bool what_is_brought_early_is_bounded(Rules rules) {
  CoreOptions options = at_once();
  options.prefetch_bytes = 2 * kBytes;
  Bench bench(rules, options);
  const torch::Tensor root = leaf();
  const torch::Tensor y = bench.under([&] { return chain(root, 10); });
  gradient(y, root);
  // And twice what is at hand.
  return bench.counts().backward_stash_peak_bytes <= 4 * kBytes;
}

bool what_a_task_did_not_ask_for_goes_at_its_end(Rules rules) {
  CoreOptions options = at_once();
  options.prefetch_bytes = 16 * kBytes;
  Bench bench(rules, options);
  const torch::Tensor root = leaf();
  torch::Tensor asked, other;
  bench.under([&] {
    other = chain(root, 2);
    asked = chain(root, 2);
    next();
  });
  gradient(asked, root);
  return bench.counts().prefetched_count > 0 && bench.counts().backward_stash_bytes == 0;
}

bool what_no_graph_needs_is_forgotten(Rules rules) {
  Bench bench(rules);
  const torch::Tensor root = leaf();
  torch::Tensor y = bench.under([&] { return chain(root, 3); });
  y.reset();
  bench.under([] { return next(); });
  return bench.empty();
}

using Case = bool (*)(Rules);

const std::map<Rule, Case>& cases() {
  static const std::map<Rule, Case> all = {
      {Rule::kVersioned, each_version_has_a_copy},
      {Rule::kCovers, a_part_does_not_serve_a_larger_one},
      {Rule::kShare, what_is_saved_twice_moves_once},
      {Rule::kShareTarget, what_is_held_serves_the_other_save},
      {Rule::kCheckVersion, what_was_written_is_refused},
      {Rule::kExempt, what_is_exempt_stays},
      {Rule::kKeepKept, what_is_kept_already_stays},
      {Rule::kOtherDevice, another_devices_tensor_stays},
      {Rule::kCopyPart, a_part_moves_alone},
      {Rule::kUseSource, what_is_still_there_is_not_brought},
      {Rule::kIdentity, another_storage_at_the_address_is_another},
      {Rule::kBoundStash, the_window_is_bounded},
      {Rule::kBoundReloads, what_is_brought_early_is_bounded},
      {Rule::kEndOfTask, what_a_task_did_not_ask_for_goes_at_its_end},
      {Rule::kForget, what_no_graph_needs_is_forgotten}};
  return all;
}

const std::map<Rule, std::string>& cannot_show() {
  static const std::map<Rule, std::string> list = {
      {Rule::kReleaseLate,
       "the event is recorded after the node: waiting for it a node early costs overlap, not "
       "safety"},
  };
  return list;
}

// Whatever a mutant throws is caught, too.
std::optional<Verdict> try_case(Case each, Rules rules) {
  try {
    if (each(rules)) return std::nullopt;
    return Verdict{"case", "it is not so"};
  } catch (const std::exception& error) {
    return Verdict{"error", error.what()};
  }
}

std::optional<Verdict> try_graphs(std::uint64_t trials, Rules rules) {
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    const auto verdict = attempt(trial, vgpu::Tempo::kMixed, true, std::nullopt, rules).verdict;
    if (verdict) return verdict;
  }
  return std::nullopt;
}

class OffloadRule : public testing::TestWithParam<Rule> {};

TEST_P(OffloadRule, IsCaughtOrListed) {
  const auto mutant = Rules::without(GetParam());
  const auto known = cases().find(GetParam());
  if (known != cases().end()) {
    const auto core = try_case(known->second, Rules());
    EXPECT_FALSE(core) << "the core itself: " << core->words;
  }
  const auto verdict =
      known != cases().end() ? try_case(known->second, mutant) : try_graphs(400, mutant);
  const auto listed = cannot_show().find(GetParam());
  EXPECT_NE(verdict.has_value(), listed != cannot_show().end()) << name(GetParam());
  std::cout << "rule: " << name(GetParam()) << " | "
            << (verdict ? verdict->oracle + " | " + verdict->words : "cannot show") << "\n";
}

INSTANTIATE_TEST_SUITE_P(Core, OffloadRule, testing::ValuesIn(offload_rules()), rule_test_name);

}  // namespace
}  // namespace ferry::real
