#include "shared/offload/section.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "shared/adaptors/observed.h"
#include "tests/shared/offload/meddled.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using test::kKiB;
using test::Meddled;

class SectionTest : public ::testing::Test {
 protected:
  using Device = Counted<Meddled>;

  SectionTest() {
    meddling->host_computes = true;
    meddling->at_host_wait = [this](Step step) { waits.push_back(step); };
  }
  // A thread's wait for a copy that has been given to the lane to the host.
  HostWait<Device> wait(Step step, const sim::Storage& storage = {}) {
    sim::Machine& machine = world.machine();
    const StreamId copies = machine.lane(Lane::kDeviceToHost);
    return {step, world.stream(0), machine.record(Step::kUser, copies), copies, nullptr, storage};
  }
  // Catches up with these waits, all of which fail; gives the error that is told.
  std::string told(const std::vector<Step>& steps) {
    meddling->at_host_wait = [](Step step) { throw std::runtime_error(std::string(name(step))); };
    Section<Device> section(mutex, context, outbound);
    for (const Step step : steps) section.bin.waits.push_back(wait(step));
    const std::exception_ptr error = section.catch_up();
    if (!error) return "";
    try {
      std::rethrow_exception(error);
    } catch (const std::runtime_error& caught) {
      return caught.what();
    }
  }
  std::int64_t protects() const { return calls->of(Step::kAbandon).calls; }

  test::World world;
  std::shared_ptr<test::Meddling> meddling = std::make_shared<test::Meddling>();
  std::shared_ptr<CallCount> calls = std::make_shared<CallCount>();
  Meddled::Mutex mutex;
  Context<Device> context{
      Device(Meddled(world.device(), meddling), calls), test::eager_options(), {}};
  Outbound<Device> outbound{context};
  std::vector<Step> waits;
};

TEST_F(SectionTest, AThreadDoesItsWaitsInTurnWithoutTheLock) {
  {
    Section<Device> section(mutex, context, outbound);
    for (const Step step : {Step::kConsume, Step::kDiscard, Step::kConsume}) {
      section.bin.waits.push_back(wait(step));
    }
    EXPECT_EQ(section.catch_up(), nullptr);
    EXPECT_EQ(waits, (std::vector{Step::kConsume, Step::kDiscard, Step::kConsume}));
    EXPECT_TRUE(Meddled::Mutex::held) << "the call goes on under it";
    EXPECT_EQ(section.catch_up(), nullptr);
  }
  EXPECT_EQ(waits.size(), 3U) << "each once";
  EXPECT_FALSE(Meddled::Mutex::held);
}

TEST_F(SectionTest, ItsEndDoesWhatWaitsAreLeft) {
  {
    Section<Device> section(mutex, context, outbound);
    section.bin.waits.push_back(wait(Step::kDiscard));
  }
  EXPECT_EQ(waits, std::vector{Step::kDiscard});
}

TEST_F(SectionTest, WithoutAWaitTheLockIsKept) {
  const std::int64_t taken = Meddled::Mutex::taken;
  { Section<Device>(mutex, context, outbound).catch_up(); }
  EXPECT_EQ(Meddled::Mutex::taken, taken + 1);
  EXPECT_EQ(context.statistics.stalled_ns, 0);
}

TEST_F(SectionTest, TheFirstErrorIsToldExceptThatOfADiscard) {
  EXPECT_EQ(told({Step::kDiscard}), "");
  EXPECT_EQ(told({Step::kConsume}), "consume");
  EXPECT_EQ(told({Step::kDiscard, Step::kConsume, Step::kDiscard, Step::kUser}), "consume");
  EXPECT_FALSE(Meddled::Mutex::held);
}

TEST_F(SectionTest, AStorageStaysUntilItsWaitIsOverAndGoesWithoutTheLock) {
  for (const bool fails : {false, true}) {
    sim::Storage storage = world.make(kKiB)->storage;
    const std::weak_ptr<sim::StorageImpl> seen = storage;
    meddling->at_host_wait = [&](Step) {
      EXPECT_FALSE(seen.expired());
      if (fails) throw std::runtime_error("the copy has failed");
    };
    {
      Section<Device> section(mutex, context, outbound);
      section.bin.waits.push_back(wait(Step::kDiscard, storage));
      storage.reset();
      section.catch_up();
      EXPECT_FALSE(seen.expired()) << "it does not go under the lock";
    }
    EXPECT_TRUE(seen.expired());
    EXPECT_EQ(protects(), fails ? 1 : 0) << "its pool waits for what the thread did not wait for";
  }
}

TEST_F(SectionTest, AFailedWaitThatKeepsNothingProtectsNothing) {
  EXPECT_EQ(told({Step::kConsume}), "consume");
  EXPECT_EQ(protects(), 0);
}

TEST_F(SectionTest, TheTimeOfWaitsIsCounted) {
  using namespace std::chrono_literals;
  meddling->at_host_wait = [](Step) { std::this_thread::sleep_for(2ms); };
  for (int i = 1; i <= 2; ++i) {
    Section<Device> section(mutex, context, outbound);
    section.bin.waits.push_back(wait(Step::kConsume));
    section.catch_up();
    EXPECT_GE(context.statistics.stalled_ns, i * 2'000'000);
  }
}

}  // namespace
}  // namespace ferry
