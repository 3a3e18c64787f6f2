// A program that catches c10::Error, as LibTorch's do, catches all of Ferry's errors; one that
// names a kind, or std::exception, catches them, too.
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <string>

#include "ferry/checkpoint.h"
#include "ferry/hooks.h"
#include "ferry/offload.h"
#include "ferry/selective.h"

namespace ferry {
namespace {

using torch::Tensor;

template <class Handler>
bool catches(const std::function<void()>& call) {
  try {
    call();
  } catch (const Handler&) {
    return true;
  } catch (...) {
  }
  return false;
}

// `what` is the start of the message, wherever it is read.
template <class Kind, class Torch = c10::Error>
void expect_caught(const std::string& what, const std::function<void()>& call) {
  EXPECT_TRUE(catches<Kind>(call)) << what;
  EXPECT_TRUE(catches<Error>(call)) << what;
  EXPECT_TRUE(catches<Torch>(call)) << what;
  EXPECT_TRUE(catches<std::exception>(call)) << what;
  try {
    call();
  } catch (const c10::Error& error) {
    EXPECT_TRUE(std::string(error.what_without_backtrace()).starts_with(what)) << error.what();
    EXPECT_STREQ(error.what(), error.what_without_backtrace());
  }
}

Tensor ones_leaf() { return torch::ones({8}, torch::requires_grad()); }

OffloadOptions eager() {
  return OffloadOptions().min_bytes(1).window_tensors(1).prefetch(0).hold(0);
}

TEST(OffloadErrors, OptionsThatMakeNoSense) {
  expect_caught<ValueError, c10::ValueError>("min_bytes should be",
                                             [] { Offload(OffloadOptions().min_bytes(-1)); });
  expect_caught<ValueError, c10::ValueError>("checkpoint_sequential: segments", [] {
    checkpoint_sequential({[](Tensor x) { return x; }}, 2, ones_leaf());
  });
  expect_caught<ValueError, c10::ValueError>("policy_fn_or_list",
                                             [] { selective(SelectivePolicy()); });
  expect_caught<ValueError, c10::ValueError>("/nowhere.plan",
                                             [] { offload_by_plan("/nowhere.plan"); });
}

TEST(OffloadErrors, ATensorThatIsWrittenInPlace) {
  expect_caught<ModifiedInPlace>("one of the variables needed", [] {
    const Offload offload(eager());
    const OffloadGuard guard(offload);
    const Tensor y = ones_leaf() + 1;
    const Tensor z = (y * y).sum();
    y.mul_(2);
    z.backward();
  });
}

TEST(OffloadErrors, ARecomputeThatDoesSomethingElse) {
  expect_caught<CheckpointError>("ferry::checkpoint: A different number of tensors", [] {
    int calls = 0;
    const auto changes = [&calls](const Tensor& x) {
      return ++calls == 1 ? x.exp().sin() : x.exp();
    };
    checkpoint(CheckpointOptions().early_stop(false), changes, ones_leaf()).sum().backward();
  });
}

TEST(OffloadErrors, HooksThatAreDisabled) {
  expect_caught<HooksDisabled>("not now", [] {
    const DisableSavedTensorsHooks disabled("not now");
    const OffloadGuard guard(eager());
  });
}

TEST(OffloadErrors, GroupsThatNest) {
  expect_caught<Error>("GraphExecGroup contexts cannot be nested", [] {
    const GraphExecGroup::Guard outer{GraphExecGroup()};
    const GraphExecGroup::Guard inner{GraphExecGroup()};
  });
}

// Errors of a worker's copy, and of rooms that know nothing of LibTorch.
TEST(OffloadErrors, ADiskWithoutRoomOrThatIsNotThere) {
  const std::string folder = std::filesystem::temp_directory_path();
  expect_caught<Error>("disk store in " + folder, [&] {
    const Offload offload(eager().disk(folder).disk_bytes_max(1));
    const OffloadGuard guard(offload);
    const Tensor x = torch::ones({1 << 16}, torch::requires_grad());
    (x * x.exp()).sum().backward();
  });
  expect_caught<Error>("disk store in /nowhere/at/all",
                       [] { Offload(OffloadOptions().disk("/nowhere/at/all")); });
}

}  // namespace
}  // namespace ferry
