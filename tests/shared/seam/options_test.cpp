#include "shared/seam/options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace ferry {
namespace {

std::string complaint(const CoreOptions& options) {
  try {
    check_options(options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Options, TheDefaultsAreSound) {
  EXPECT_EQ(complaint({}), "");
  EXPECT_EQ(complaint(trl_options()), "");
}

TEST(Options, ComplaintsNameTheOptionItsBoundAndItsValue) {
  const auto with = [](auto member, std::int64_t value) {
    CoreOptions options;
    options.*member = value;
    return complaint(options);
  };
  using O = CoreOptions;
  EXPECT_EQ(with(&O::min_bytes, -1), "min_bytes should be at least 0 but is -1");
  EXPECT_EQ(with(&O::window_tensors, 0), "window_tensors should be at least 1 but is 0");
  EXPECT_EQ(with(&O::window_bytes, -2), "window_bytes should be at least 0 but is -2");
  EXPECT_EQ(with(&O::prefetch_bytes, -3), "prefetch_bytes should be at least 0 but is -3");
  EXPECT_EQ(with(&O::prefetch_tensors, -1), "prefetch_tensors should be at least 0 but is -1");
  EXPECT_EQ(with(&O::hold_bytes, -4), "hold_bytes should be at least 0 but is -4");
  EXPECT_EQ(with(&O::host_warn_percent, -1), "host_warn_percent should be at least 0 but is -1");
}

TEST(Options, TheLeastValuesAreSound) {
  CoreOptions least;
  least.min_bytes = 0;
  least.window_tensors = 1;
  least.window_bytes = 0;
  least.prefetch_bytes = 0;
  least.prefetch_tensors = 0;
  least.hold_bytes = 0;
  least.host_warn_percent = 0;
  EXPECT_EQ(complaint(least), "");
  least.window_bytes = least.prefetch_bytes = least.hold_bytes = kAutomatic;
  EXPECT_EQ(complaint(least), "");
}

// As docs/guides/training-in-cpp.md says: no bound in packs, and 512 MiB each way.
TEST(Options, FerrysOwnDefaultsAreItsDocumentedBounds) {
  constexpr std::int64_t kHalfGiB = 536'870'912;
  const CoreOptions own;
  EXPECT_EQ(own.host_memory, HostMemory::kPinned);
  EXPECT_EQ(own.copy_streams, CopyStreams::kTwo);
  EXPECT_EQ(own.reload_pool, ReloadPool::kConsumer);
  EXPECT_EQ(own.min_bytes, 1024);
  EXPECT_EQ(own.window_tensors, kUnlimited);
  EXPECT_EQ(own.window_bytes, kHalfGiB);
  EXPECT_EQ(own.prefetch_bytes, kHalfGiB);
  EXPECT_EQ(own.prefetch_tensors, kUnlimited);
  EXPECT_EQ(own.hold_bytes, kHalfGiB);
  EXPECT_EQ(own.host_warn_percent, 60);
  EXPECT_FALSE(own.keep_when_full);
  EXPECT_TRUE(own.offload.empty());
  EXPECT_FALSE(own.warn);
  EXPECT_FALSE(own.log);
}

TEST(Decision, IsTheFirstPackOfNoBytesUnlessItSaysOtherwise) {
  EXPECT_EQ(Decision(), (Decision{DecisionKind::kPack, 0, 0, 0}));
}

// torchtune's and TRL's OffloadActivations: use_pin_memory, use_streams, min_offload_size,
// max_fwd_stash_size, and the percentage of the warning.
TEST(Options, TrlHasItsPublishedDefaults) {
  const CoreOptions trl = trl_options();
  EXPECT_EQ(trl.host_memory, HostMemory::kPinned);
  EXPECT_EQ(trl.copy_streams, CopyStreams::kOne);
  EXPECT_EQ(trl.reload_pool, ReloadPool::kCopyStream);
  EXPECT_EQ(trl.min_bytes, 1024);
  EXPECT_EQ(trl.window_tensors, 5);
  EXPECT_EQ(trl.window_bytes, kUnlimited);
  EXPECT_EQ(trl.prefetch_bytes, 0);
  EXPECT_EQ(trl.prefetch_tensors, kUnlimited);
  EXPECT_EQ(trl.hold_bytes, 0);
  EXPECT_EQ(trl.host_warn_percent, 60);
  EXPECT_FALSE(trl.keep_when_full);
}

}  // namespace
}  // namespace ferry
