// An offloader on a device that a test meddles with.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "shared/adaptors/observed.h"
#include "shared/offload/offloader.h"
#include "tests/shared/offload/meddled.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry::test {

class MeddledRig {
 public:
  using Device = Counted<Meddled>;

  explicit MeddledRig(const CoreOptions& options = eager_options(), const Rules& rules = {})
      : offloader(Device(Meddled(world.device(), meddling), calls), ScriptAutograd(script), options,
                  rules) {}

  SaveRef pack(const sim::Tensor& tensor) { return offloader.hooks()->pack(tensor); }
  SaveRef pack_new(std::int64_t bytes) { return pack(world.make(bytes)); }
  void evict() { pack_new(Rig::kTiny); }  // all earlier sources, where the window is of one pack

  OffloadStatistics counts() const { return offloader.statistics(); }
  std::int64_t made(Step step) const { return calls->of(step).calls; }
  std::int64_t live_storages() { return world.machine().live_storages(); }
  std::int64_t host_bytes() { return world.machine().host_pool().stats().in_use_bytes.current; }

  World world;
  Script script;
  std::shared_ptr<CallCount> calls = std::make_shared<CallCount>();
  std::shared_ptr<Meddling> meddling = std::make_shared<Meddling>();
  Offloader<Device, ScriptAutograd> offloader;
};

}  // namespace ferry::test
