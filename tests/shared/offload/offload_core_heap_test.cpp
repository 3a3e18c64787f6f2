// The program's own memory gives out while a tensor is packed.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "shared/adaptors/forward.h"
#include "shared/offload/offloader.h"
#include "tests/shared/offload/host_heap.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using test::HeapGivesOut;
using test::HeapSpares;
using test::kBytes;
using test::SaveRef;
using test::ScriptAutograd;

// There is no more memory once a copy to the host runs, but for the device itself.
class OutOnceItCopies : public Forward<sim::SimDevice> {
 public:
  using Base = Forward<sim::SimDevice>;
  using Out = std::shared_ptr<std::optional<HeapGivesOut>>;

  OutOnceItCopies(sim::SimDevice device, Out out) : Base(std::move(device)), out_(std::move(out)) {}

  Event record(Step step, const Stream& stream) {
    const HeapSpares spares;
    return Base::record(step, stream);
  }
  void wait(Step step, const Stream& stream, const Event& event) {
    const HeapSpares spares;
    Base::wait(step, stream, event);
  }
  void record_use(Step step, const Storage& storage, const Stream& stream) {
    const HeapSpares spares;
    Base::record_use(step, storage, stream);
  }
  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream) {
    Base::offload(step, storage, begin, host, stream);
    out_->emplace();
  }

 private:
  Out out_;
};

TEST(OffloadCoreHeap, OnceACopyRunsNothingFailsForWantOfMemory) {
  for (const bool logs : {false, true}) {
    test::World world;
    test::Script script;
    std::vector<Decision> decisions;
    decisions.reserve(1000);
    CoreOptions options = test::eager_options();
    if (logs) options.log = [&](const Decision& decision) { decisions.push_back(decision); };
    const auto out = std::make_shared<std::optional<HeapGivesOut>>();
    Offloader<OutOnceItCopies, ScriptAutograd> offloader(OutOnceItCopies(world.device(), out),
                                                         ScriptAutograd(script), options);
    std::vector<sim::Tensor> sources;  // the simulated device needs memory to free one
    std::vector<SaveRef> saves;
    std::vector<std::uint64_t> contents;
    for (int i = 0; i < 20; ++i) {
      sources.push_back(world.make(kBytes));
      contents.push_back(world.contents(sources.back()));
      const auto hooks = offloader.hooks();
      SaveRef save;
      bool failed = false;
      try {
        save = hooks->pack(sources.back());
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      ASSERT_TRUE(out->has_value()) << "nothing was copied";
      out->reset();
      ASSERT_FALSE(failed) << "pack " << i << (logs ? ", with a log" : "");
      saves.push_back(std::move(save));
    }
    sources.clear();
    script.backward([&] {
      for (std::size_t i = saves.size(); i-- > 0;) {
        script.node([&] {
          const sim::Tensor x = saves[i]->unpack();
          world.use(x);
          EXPECT_EQ(world.contents(x), contents[i]);
        });
      }
    });
    saves.clear();
    EXPECT_TRUE(offloader.empty());
    world.expect_clean();
  }
}

}  // namespace
}  // namespace ferry
