// Every mutant of the core is caught: by an oracle on a random program, by a case of its own, or it
// is listed with the reason why it cannot be told from the core.
#include <gtest/gtest.h>

#include <cctype>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "shared/offloader.h"
#include "sim/checkers/values.h"
#include "sim/device.h"
#include "tests/core/pipeline_cases.h"
#include "tests/support/mutants.h"
#include "tests/support/script.h"

namespace ferry::test {
namespace {

// Enough for each by a factor of two and more: the slowest takes about a thousand.
constexpr int kPrograms = 4000;
constexpr int kProgramsForEquivalent = 500;

const std::map<std::string, std::string>& equivalent() {
  static const std::map<std::string, std::string> list = {
      {"rule: release late",
       "the event is recorded after the node: waiting for it a node early costs overlap, not "
       "safety"},
  };
  return list;
}

class ValueConsumer final : public sim::StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override { values(op); }
  sim::Values values;
};

// What programs cannot write down. True where the core does it right.
struct Bench {
  explicit Bench(Rules rules, CoreOptions options = {})
      : offloader(sim::SimDevice(machine), ScriptAutograd(script), std::move(options), rules) {
    machine.add_consumer(&consumer);
  }
  sim::Machine machine{sim::MachineOptions{}};
  ValueConsumer consumer;
  Script script;
  Offloader<sim::SimDevice, ScriptAutograd> offloader;
};

// x.data = other: x keeps its version counter, and the other storage lies where the first one did.
bool reused_address_is_no_identity(Rules rules) {
  CoreOptions options;
  options.window_bytes = 0;
  Bench bench(rules, options);
  const sim::Tensor x = make_bytes(bench.machine, 4096);
  const auto first = bench.offloader.hooks()->pack(x);
  const auto evicts = bench.offloader.hooks()->pack(make_bytes(bench.machine, 4096));
  x->storage = nullptr;
  x->storage = bench.machine.allocate(4096, bench.machine.current_stream());
  bench.consumer.values.write(sim::range_of(x), 7);
  const std::uint64_t expected = bench.consumer.values.read(sim::range_of(x));
  const auto second = bench.offloader.hooks()->pack(x);
  x->storage = nullptr;
  const auto evicts_again = bench.offloader.hooks()->pack(make_bytes(bench.machine, 8192));
  return bench.consumer.values.read(sim::range_of(second->unpack())) == expected;
}

bool kept_storage_does_not_move(Rules rules) {
  CoreOptions options;
  options.offload = {false, true};
  Bench bench(rules, options);
  const sim::Tensor x = make_bytes(bench.machine, 4096);
  const auto kept = bench.offloader.hooks()->pack(x);
  const auto again = bench.offloader.hooks()->pack(x);
  return bench.offloader.statistics().offloaded_count == 0;
}

bool other_devices_tensors_stay(Rules rules) {
  sim::Machine other{sim::MachineOptions{}};
  Bench bench(rules);
  const sim::Tensor x = make_bytes(other, 4096);
  const auto saved = bench.offloader.hooks()->pack(x);
  return bench.offloader.statistics().offloaded_count == 0 &&
         saved->unpack()->storage == x->storage;
}

const std::map<std::string, Case>& own_cases() {
  static const std::map<std::string, Case> cases = [] {
    std::map<std::string, Case> all = checkpoint_cases();
    all.merge(pipeline_cases());
    all["rule: identity"] = of_rules(reused_address_is_no_identity);
    all["rule: keep kept"] = of_rules(kept_storage_does_not_move);
    all["rule: other device"] = of_rules(other_devices_tensors_stay);
    return all;
  }();
  return cases;
}

class EveryMutant : public testing::TestWithParam<Mutant> {};

TEST_P(EveryMutant, IsCaughtOrListed) {
  const Mutant& mutant = GetParam();
  if (const auto listed = equivalent().find(mutant.name); listed != equivalent().end()) {
    EXPECT_FALSE(hunt(mutant, kProgramsForEquivalent)) << "it is caught: take it off the list";
    std::cout << mutant.name << " | equivalent | - | " << listed->second << "\n";
    return;
  }
  if (const auto own = own_cases().find(mutant.name); own != own_cases().end()) {
    EXPECT_TRUE(own->second({"none", Rules(), std::nullopt}));
    EXPECT_FALSE(own->second(mutant));
    std::cout << mutant.name << " | own case | 1 |\n";
    return;
  }
  const auto kill = hunt(mutant, kPrograms);
  ASSERT_TRUE(kill) << mutant.name << " survives";
  std::cout << mutant.name << " | " << kill->oracle << " | " << kill->programs << " | "
            << kill->words << "\n";
}

INSTANTIATE_TEST_SUITE_P(Core, EveryMutant, testing::ValuesIn(all_mutants()), [](const auto& each) {
  std::string text = each.param.name;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
});

TEST(Mutants, TheCoreItselfSurvivesTheSameHunt) {
  EXPECT_FALSE(hunt({"none", Rules(), std::nullopt}, kPrograms));
  EXPECT_FALSE(hunt({"none", Rules(), std::nullopt, true}, kPrograms));
}

TEST(Mutants, EveryStepHasOne) {
  std::set<Step> steps;
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.mutation) steps.insert(mutant.mutation->step);
  }
  for (std::size_t i = 1; i < kSteps; ++i) {
    const Step step = static_cast<Step>(i);
    if (step == Step::kHostAllocate) continue;  // no order, no decision: it only may fail
    EXPECT_TRUE(steps.contains(step)) << name(step);
  }
}

}  // namespace
}  // namespace ferry::test
