// An offloader on a World with a Script: what its tests drive. Its templates are compiled once, in
// offloader_rig.cpp: each of the tests' files would else spend a third of its time on them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/adaptors/observed.h"
#include "shared/offload/offloader.h"
#include "tests/sim/support/script.h"
#include "tests/sim/support/sizes.h"
#include "tests/sim/support/world.h"

namespace ferry {

extern template class Outbound<Counted<sim::SimDevice>>;
extern template class Inbound<Counted<sim::SimDevice>>;
extern template class OffloadCore<Counted<sim::SimDevice>, test::ScriptAutograd>;
extern template class Offloader<Counted<sim::SimDevice>, test::ScriptAutograd>;

}  // namespace ferry

namespace ferry::test {

inline constexpr std::int64_t kBytes = 64 * kKiB;  // of a tensor, where any size would do

using SaveRef = std::unique_ptr<Saved<sim::Tensor>>;

// Sources leave the device at the next pack, and nothing comes back before it is asked for.
inline CoreOptions eager_options() {
  CoreOptions options;
  options.window_tensors = 1;
  options.prefetch_bytes = 0;
  options.hold_bytes = 0;
  return options;
}

// For suites that hold wherever a reload lands.
inline const auto kBothPools = ::testing::Values(ReloadPool::kConsumer, ReloadPool::kCopyStream);
inline std::string pool_name(const ::testing::TestParamInfo<ReloadPool>& chosen) {
  return chosen.param == ReloadPool::kConsumer ? "Consumer" : "CopyStream";
}

class Rig {
 public:
  using Tensor = sim::Tensor;
  using Device = Counted<sim::SimDevice>;

  explicit Rig(CoreOptions options = eager_options(), const sim::MachineOptions& machine = {})
      : world(machine),
        calls(std::make_shared<CallCount>()),
        offloader(Device(world.device(), calls), ScriptAutograd(script), with_log(options)) {}

  SaveRef pack(const Tensor& tensor) { return offloader.hooks()->pack(tensor); }
  // Packs the tensor and drops it, as a forward does: what is left of it is the save.
  SaveRef pack_only(Tensor&& tensor) {
    SaveRef save = pack(tensor);
    tensor.reset();
    return save;
  }
  // Pushes all earlier sources out of a window of packs.
  void evict() { pack(world.make(kTiny)); }

  // One node that unpacks `save`, reads it, and lets go of it; gives what it read.
  std::uint64_t consume(const SaveRef& save) {
    std::uint64_t contents = 0;
    script.node([&] {
      const Tensor tensor = save->unpack();
      world.use(tensor);
      contents = world.contents(tensor);
    });
    return contents;
  }
  // A backward of one such node per save, the last first; gives what they read, the first first.
  std::vector<std::uint64_t> backward(const std::vector<SaveRef>& saves) {
    std::vector<std::uint64_t> read(saves.size());
    script.backward([&] {
      for (std::size_t i = saves.size(); i-- > 0;) read[i] = consume(saves[i]);
    });
    return read;
  }

  void expect_clean() {
    EXPECT_TRUE(offloader.empty());
    EXPECT_EQ(offloader.statistics().forward_stash_bytes, 0);
    EXPECT_EQ(offloader.statistics().backward_stash_bytes, 0);
    world.expect_clean();
  }
  std::int64_t live_storages() { return world.machine().live_storages(); }
  std::int64_t waits(Step step) const { return calls->of(step).calls; }

  static constexpr std::int64_t kTiny = 16;  // never moved

  World world;
  Script script;
  std::shared_ptr<CallCount> calls;
  std::vector<Decision> decisions;
  Offloader<Device, ScriptAutograd> offloader;

 private:
  CoreOptions with_log(CoreOptions options) {
    options.log = [this](const Decision& decision) { decisions.push_back(decision); };
    return options;
  }
};

}  // namespace ferry::test
