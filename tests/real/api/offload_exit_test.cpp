// A guard in a static ends after the main thread's own variables: what it would restore is gone,
// and to look at it crashed the program at its exit.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "ferry/checkpoint.h"
#include "ferry/hooks.h"
#include "ferry/offload.h"

namespace ferry {
namespace {

struct Kind {
  std::string name;
  std::function<void()> make;  // in a static
};

OffloadOptions small() { return OffloadOptions().window(0).min_bytes(0); }
torch::Tensor keep(const torch::Tensor& x) { return x; }

const std::vector<Kind> kKinds = {
    {"Offload", [] { static const Offload offload(small()); }},
    {"OffloadGuard", [] { static const OffloadGuard guard(small()); }},
    {"OffloadGuardWithATrace", [] { static const OffloadGuard guard(small().trace(true)); }},
    {"NoOffloadGuard", [] { static const NoOffloadGuard guard; }},
    {"SavedTensorsHooks", [] { static const SavedTensorsHooks guard(keep, keep); }},
    {"NoSavedTensorsHooks", [] { static const NoSavedTensorsHooks guard; }},
    {"DisableSavedTensorsHooks", [] { static const DisableSavedTensorsHooks guard("not here"); }},
    {"CheckpointEarlyStopGuard", [] { static const CheckpointEarlyStopGuard guard(false); }},
    {"GraphExecGroupGuard", [] { static const GraphExecGroup::Guard guard{GraphExecGroup()}; }},
};

// Ends after the thread's variables: what they were is written over.
struct Spoiler {
  Spoiler() = default;
  Spoiler(const Spoiler&) = delete;
  Spoiler& operator=(const Spoiler&) = delete;
  ~Spoiler() {
    for (std::size_t bytes = 16; bytes <= 512; bytes += 16) {
      for (int i = 0; i < 64; ++i) kept.emplace_back(bytes, '\xff');
    }
  }
  std::vector<std::string> kept;
};

class ExitDeathTest : public ::testing::TestWithParam<Kind> {};

TEST_P(ExitDeathTest, AGuardInAStaticLetsTheProgramEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto program = [] {
    GetParam().make();
    static const Spoiler before_the_guard;
    // Whose graph is alive at the end.
    static const torch::Tensor y = torch::ones({64}, torch::requires_grad()).exp().sin();
    y.sum().backward({}, /*retain_graph=*/true);
    static const Spoiler before_the_graph;
    std::exit(0);
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Guards, ExitDeathTest, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace ferry
