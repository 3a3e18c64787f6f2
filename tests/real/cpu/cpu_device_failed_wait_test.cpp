// A wait for a copy that fails leaves the copy under way: its block must outlive it.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "shared/adaptors/observed.h"
#include "shared/offload/offloader.h"
#include "tests/real/cpu/cpu_world.h"
#include "tests/real/script.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kInts = 4096;

// The reload was enqueued, and the wait for it failed: the tensor was dropped, its block freed, and
// then the copy wrote to it.
TEST(CpuFailedWait, TheBlockOfAReloadOutlivesItsCopy) {
  CpuDevice cpu(with_pace(std::make_shared<LazyPace>()));
  const auto fault = std::make_shared<FaultPoint>(Step::kConsume, 0);
  CoreOptions options;
  options.window_tensors = 1;
  options.prefetch_bytes = 0;
  options.hold_bytes = 0;
  Script script;
  Offloader<Faulty<CpuDevice>, ScriptAutograd> offloader(Faulty<CpuDevice>(cpu, fault),
                                                         ScriptAutograd(script), options);
  auto save = offloader.hooks()->pack(at::full({kInts}, 1, at::kInt));
  offloader.hooks()->pack(at::empty({1}, at::kInt));  // the source leaves
  const auto unpack = [&] {
    at::Tensor x;
    script.backward([&] { script.node([&] { x = save->unpack(); }); });
    return x;
  };
  EXPECT_THROW(unpack(), InjectedFault);
  EXPECT_EQ(cpu.usage().deferred_blocks, 1);

  EXPECT_TRUE(at::equal(unpack(), at::full({kInts}, 1, at::kInt)));
  save.reset();
  EXPECT_TRUE(offloader.empty());
  cpu.finish();
  EXPECT_EQ(cpu.usage().deferred_blocks, 0);
}

}  // namespace
}  // namespace ferry::real
