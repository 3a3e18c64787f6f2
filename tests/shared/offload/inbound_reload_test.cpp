// What a parcel remembers of its reloads: its host bytes go back when the last of them are done.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

using test::kBytes;
using test::Parts;
using ParcelRef = Parts::ParcelRef;
using Text = std::vector<std::string>;

// Reloads it on that stream, for nobody.
void reload(Parts& parts, const ParcelRef& parcel, std::uint32_t stream = 0) {
  parts.compute_on(stream);
  parts.bring(parcel);
  Bin<Parts::Device> bin;
  parts.inbound.let_go(*parcel, GraphTaskId::kNone, bin);
}

TEST(InboundReload, OnlyTheLatestReloadOnEachStreamIsRemembered) {
  Parts parts;
  std::vector<ParcelRef> parcels = parts.away(1);
  for (int i = 0; i < 3; ++i) reload(parts, parcels[0]);
  EXPECT_EQ(parcels[0]->reloads.size(), 1U);
  parts.end(parcels);
  parts.expect_clean();
}

// Without copy streams each consumer's stream copies for itself.
TEST(InboundReload, TheReloadsOfEveryStreamAreRemembered) {
  CoreOptions options = test::eager_options();
  options.copy_streams = CopyStreams::kNone;
  Parts parts(options);
  std::vector<ParcelRef> parcels = parts.away(1);
  for (const std::uint32_t stream : {0, 1, 2, 1}) reload(parts, parcels[0], stream);
  ASSERT_EQ(parcels[0]->reloads.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(parcels[0]->reloads[i].first, parts.world.stream(i));
  }
  parts.end(parcels);
  parts.expect_clean();
}

// An earlier reload's end says nothing of it.
TEST(InboundReload, HostBytesGoBackAfterAReloadWhoseEndIsNotKnown) {
  Parts parts;
  std::vector<ParcelRef> parcels = parts.away(1);
  reload(parts, parcels[0]);
  parts.fails = Step::kReloaded;
  EXPECT_THROW(parts.bring(parcels[0]), InjectedFault);
  parts.end(parcels[0]);
  EXPECT_EQ(parts.made(Step::kAbandon), 2) << "a use of the target, and a record for the host";
  EXPECT_EQ(parts.host_bytes(), 0);
  sim::Machine& machine = parts.world.machine();
  machine.synchronize(Step::kUser, machine.lane(Lane::kDeviceToHost));
  parts.compute_on(1);
  const ParcelRef next = parts.send(parts.world.make(kBytes));  // may be given the host bytes
  EXPECT_EQ(parts.world.hazards(), Text{});
}

}  // namespace
}  // namespace ferry
