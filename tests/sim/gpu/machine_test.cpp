#include "sim/gpu/machine.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

using Kind = StreamOpKind;

// A byte a nanosecond on the link, and 5 ns to launch something.
MachineOptions options() {
  MachineOptions options;
  options.links = {1'000, 1'000, 1'000, 1'000, 0};
  options.launch_ns = 5;
  return options;
}

struct Watched {
  explicit Watched(const MachineOptions& with = options()) : machine(with) {
    machine.add_consumer(&log);
    compute = machine.compute_stream(0);
  }
  test::OpLog log;
  Machine machine;
  StreamId compute{};
};

TEST(MachineTest, AKernelIsOneOperationWithWhatItTouches) {
  Watched w;
  const Range in{100, 8};
  const std::array<Range, 2> out{Range{200, 8}, Range{300, 4}};
  w.machine.kernel("mm", 7, {&in, 1}, out, 50);
  ASSERT_EQ(w.log.ops.size(), 1u);
  const test::LoggedOp& op = w.log.ops[0];
  EXPECT_EQ(op.kind, Kind::kKernel);
  EXPECT_EQ(op.step, Step::kUser);
  EXPECT_EQ(op.stream, w.compute);
  EXPECT_EQ(op.reads, std::vector<Range>{in});
  EXPECT_EQ(op.writes, std::vector<Range>(out.begin(), out.end()));
  EXPECT_EQ(op.name, "mm");
}

TEST(MachineTest, AKernelRunsOnTheCurrentStream) {
  Watched w;
  w.machine.set_current_stream(w.machine.compute_stream(2));
  w.machine.kernel("mm", 0, {}, {}, 1);
  EXPECT_EQ(w.log.ops[0].stream, w.machine.compute_stream(2));
  EXPECT_NE(w.machine.compute_stream(1), w.machine.compute_stream(2));
}

TEST(MachineTest, CopiesSayTheirDirectionTheirStepAndBothRanges) {
  Watched w;
  const Range device{100, 8};
  const Range host{std::uint64_t{1} << 60, 8};
  const StreamId lane = w.machine.lane(Lane::kDeviceToHost);
  w.machine.copy(Step::kOffload, CopyKind::kDeviceToHost, device, host, lane, false);
  w.machine.copy_on_device("clone", device, {200, 8}, 4);
  const test::LoggedOp& out = w.log.ops[0];
  EXPECT_EQ(out.kind, Kind::kCopy);
  EXPECT_EQ(out.copy, CopyKind::kDeviceToHost);
  EXPECT_EQ(out.step, Step::kOffload);
  EXPECT_EQ(out.stream, lane);
  EXPECT_EQ(out.reads, std::vector<Range>{device});
  EXPECT_EQ(out.writes, std::vector<Range>{host});
  EXPECT_EQ(w.log.ops[1].copy, CopyKind::kDeviceToDevice);
  EXPECT_EQ(w.log.ops[1].stream, w.compute);
}

TEST(MachineTest, RecordsAndWaitsNameOneEvent) {
  Watched w;
  const EventHandle event = w.machine.record(Step::kProduced, w.compute);
  const StreamId lane = w.machine.lane(Lane::kDeviceToHost);
  w.machine.wait(Step::kOffloadAfterProducer, lane, event);
  ASSERT_EQ(w.log.ops.size(), 2u);
  EXPECT_EQ(w.log.ops[0].kind, Kind::kRecord);
  EXPECT_EQ(w.log.ops[0].step, Step::kProduced);
  EXPECT_EQ(w.log.ops[0].stream, w.compute);
  EXPECT_EQ(w.log.ops[1].kind, Kind::kWait);
  EXPECT_EQ(w.log.ops[1].step, Step::kOffloadAfterProducer);
  EXPECT_EQ(w.log.ops[1].stream, lane);
  EXPECT_EQ(w.log.ops[1].event, w.log.ops[0].event);
}

TEST(MachineTest, AWaitOnANeverRecordedEventIsNothing) {
  Watched w;
  w.machine.wait(Step::kUser, w.compute, EventHandle());
  EXPECT_TRUE(w.log.ops.empty());
  EXPECT_EQ(w.machine.operations(), 0);
}

TEST(MachineTest, TheHostWaitsForAStream) {
  Watched w;
  w.machine.kernel("mm", 0, {}, {}, 50);
  w.machine.synchronize(Step::kUser, w.compute);
  EXPECT_EQ(w.log.ops.back().kind, Kind::kStreamSync);
  EXPECT_EQ(w.log.ops.back().stream, w.compute);
  EXPECT_GE(w.machine.host_now(), 50);
}

TEST(MachineTest, AnEventsNumberIsReusedWhenItsLastHandleIsGone) {
  Watched w;
  EventHandle first = w.machine.record(Step::kUser, w.compute);
  EventHandle copy = first;
  const EventId id = first->id;
  first.reset();
  EXPECT_NE(w.machine.record(Step::kUser, w.compute)->id, id);
  EXPECT_EQ(w.machine.live_events(), 1);
  copy.reset();
  EXPECT_EQ(w.machine.live_events(), 0);
  const EventHandle next = w.machine.record(Step::kUser, w.compute);
  const EventHandle after = w.machine.record(Step::kUser, w.compute);
  EXPECT_TRUE(next->id == id || after->id == id);
  EXPECT_NE(next->id, after->id);
}

TEST(MachineTest, AStorageIsHandedOutAndGivenBack) {
  Watched w;
  Storage storage = w.machine.allocate(1000, w.compute, Step::kReloadAllocate);
  EXPECT_EQ(w.machine.live_storages(), 1);
  ASSERT_EQ(w.log.ops.size(), 1u);
  EXPECT_EQ(w.log.ops[0].kind, Kind::kAlloc);
  EXPECT_EQ(w.log.ops[0].step, Step::kReloadAllocate);
  EXPECT_EQ(w.log.ops[0].stream, w.compute);
  EXPECT_EQ(w.log.ops[0].range, (Range{storage->address, 1024}));  // as rounded
  w.machine.record_use(Step::kEscaped, storage, w.machine.lane(Lane::kDeviceToHost));
  EXPECT_EQ(w.log.ops[1].kind, Kind::kRecordUse);
  EXPECT_EQ(w.log.ops[1].step, Step::kEscaped);
  EXPECT_EQ(w.log.ops[1].stream, w.machine.lane(Lane::kDeviceToHost));
  storage.reset();
  EXPECT_EQ(w.log.ops[2].kind, Kind::kFree);
  EXPECT_EQ(w.log.ops[2].range, w.log.ops[0].range);
  EXPECT_EQ(w.machine.live_storages(), 0);
  EXPECT_EQ(w.machine.pool().stats().allocated_bytes.current, 0);
}

TEST(MachineTest, AStorageWithoutBytesIsNoOperation) {
  Watched w;
  Storage storage = w.machine.allocate(0, w.compute);
  w.machine.record_use(Step::kUser, storage, w.compute);
  EXPECT_EQ(w.machine.live_storages(), 1);
  storage.reset();
  EXPECT_EQ(w.machine.live_storages(), 0);
  EXPECT_TRUE(w.log.ops.empty());
}

TEST(MachineTest, StoragesAndVersionsAreNeverNumberedAlike) {
  Watched w;
  const std::uint64_t first = w.machine.allocate(512, w.compute)->identity;
  EXPECT_NE(w.machine.allocate(512, w.compute)->identity, first);  // at the same address
  EXPECT_NE(w.machine.new_version()->identity, w.machine.new_version()->identity);
}

TEST(MachineTest, HostBytesGoBackWithTheEventsThatHoldThem) {
  Watched w;
  const HostBlock block = w.machine.allocate_host(Step::kHostAllocate, 100);
  EventHandle event = w.machine.record(Step::kOffloaded, w.machine.lane(Lane::kDeviceToHost));
  w.machine.release_host(Step::kHostReturn, block, std::array{event, EventHandle()});
  ASSERT_EQ(w.log.ops.size(), 4u);
  EXPECT_EQ(w.log.ops[0].kind, Kind::kAlloc);
  EXPECT_EQ(w.log.ops[0].range, block.range());
  EXPECT_EQ(w.log.ops[2].kind, Kind::kRecordUse);
  EXPECT_EQ(w.log.ops[2].stream, event->stream);
  EXPECT_EQ(w.log.ops[2].event, event->id);
  EXPECT_TRUE(w.log.ops[2].until_event);
  EXPECT_EQ(w.log.ops[3].kind, Kind::kFree);
  EXPECT_EQ(w.log.ops[3].step, Step::kHostReturn);
  EXPECT_EQ(w.machine.host_pool().stats().in_use_bytes.current, 0);
  // An event that only the pool holds does not count as left.
  event.reset();
  EXPECT_EQ(w.machine.live_events(), 0);
}

TEST(MachineTest, EachLaunchTakesHostTimeAndEventsTakeNone) {
  Watched w;
  w.machine.kernel("a", 0, {}, {}, 1);
  w.machine.copy_on_device("b", {}, {}, 1);
  EXPECT_EQ(w.machine.drain(), 6);  // the second was launched at 5
  EXPECT_EQ(w.machine.host_now(), 10);
  w.machine.wait(Step::kUser, w.compute, w.machine.record(Step::kUser, w.compute));
  const Storage storage = w.machine.allocate(512, w.compute);
  EXPECT_EQ(w.machine.host_now(), 10);
}

TEST(MachineTest, APinnedCopyRunsBesideTheHostAndAPageableOneBlocksIt) {
  for (const bool pageable : {false, true}) {
    Watched w;
    w.machine.kernel("a", 0, {}, {}, 300);
    const StreamId lane = w.machine.lane(Lane::kDeviceToHost);
    w.machine.copy(Step::kOffload, CopyKind::kDeviceToHost, {0, 1000}, {0, 1000}, lane, pageable);
    EXPECT_EQ(w.machine.host_now(), pageable ? 5 + 1000 : 10);
    w.machine.kernel("b", 0, {}, {}, 300);
    EXPECT_EQ(w.machine.drain(), pageable ? 1305 : 1005);
  }
}

TEST(MachineTest, APageableCopyTakesAsLongAsTheHostCopiesItAside) {
  MachineOptions slow = options();
  slow.pageable_d2h = 500;
  slow.pageable_h2d = 250;  // bytes a microsecond; the link takes 1000 either way
  Watched w(slow);
  const StreamId lane = w.machine.lane(Lane::kDeviceToHost);
  w.machine.copy(Step::kOffload, CopyKind::kDeviceToHost, {0, 1000}, {0, 1000}, lane, true);
  EXPECT_EQ(w.machine.host_now(), 2000);
  w.machine.copy(Step::kReload, CopyKind::kHostToDevice, {0, 1000}, {0, 1000}, lane, true);
  EXPECT_EQ(w.machine.host_now(), 2000 + 4000);
  w.machine.copy(Step::kOffload, CopyKind::kDeviceToHost, {0, 1000}, {0, 1000}, lane, false);
  EXPECT_EQ(w.machine.host_now(), 6005) << "pinned memory is not";
}

TEST(MachineTest, TimeThatComputingWaitsForACopyIsTold) {
  Watched w;
  const StreamId lane = w.machine.lane(Lane::kHostToDevice);
  w.machine.copy(Step::kReload, CopyKind::kHostToDevice, {0, 1000}, {0, 1000}, lane, false);
  w.machine.kernel("a", 0, {}, {}, 95);  // from 5 to 100
  w.machine.wait(Step::kConsume, w.compute, w.machine.record(Step::kReloaded, lane));
  w.machine.kernel("b", 0, {}, {}, 50);
  EXPECT_EQ(w.machine.drain(), 1050);
  EXPECT_EQ(w.machine.compute_blocked_on_copies_ns(), 900);
  EXPECT_EQ(w.machine.device_stats().h2d_busy_ns, 1000);
  EXPECT_EQ(w.machine.device_stats().compute_busy_ns, 145);
}

TEST(MachineTest, CapacityIsTheDevices) {
  MachineOptions small = options();
  small.device_bytes = std::int64_t{2} << 20;
  Watched w(small);
  const Storage storage = w.machine.allocate(1 << 20, w.compute);
  EXPECT_THROW(w.machine.allocate(std::int64_t{4} << 20, w.compute), OutOfMemory);
  EXPECT_EQ(w.machine.live_storages(), 1);
  MachineOptions host = options();
  host.host_bytes = 4096;
  Watched other(host);
  other.machine.allocate_host(Step::kHostAllocate, 1);
  EXPECT_THROW(other.machine.allocate_host(Step::kHostAllocate, 1), OutOfHostMemory);
}

// Each kind of call and each MiB has a time of its own, and all digits of the sum are its.
constexpr DriverTimes kDigits{.malloc_ns = 10'000'000,
                              .malloc_mib_ns = 100'000,
                              .free_ns = 1'000'000,
                              .free_mib_ns = 1'000,
                              .map_ns = 3,
                              .unmap_ns = 40};

TEST(MachineTest, CallsOfTheDriverTakeTimeOnceThePoolWasFull) {
  MachineOptions small = options();
  small.device_bytes = std::int64_t{50} << 20;
  small.driver = kDigits;
  Watched w(small);
  for (int i = 0; i < 2; ++i) w.machine.allocate(std::int64_t{20} << 20, w.compute).reset();
  EXPECT_EQ(w.machine.host_now(), 0) << "it is not full, and the second has the first's block";
  w.machine.kernel("mm", 0, {}, {}, 7'000);
  const Storage large = w.machine.allocate(std::int64_t{40} << 20, w.compute);
  const sim::Time began = 7'000;  // it waits for the device, and gives 20 MiB back
  EXPECT_EQ(w.machine.host_now(), began + 1'000'000 + 20 * 1'000 + 10'000'000 + 40 * 100'000);
  const sim::Time then = w.machine.host_now();
  const Storage more = w.machine.allocate(std::int64_t{1} << 20, w.compute);
  EXPECT_EQ(w.machine.host_now(), then + 10'000'000 + 2 * 100'000) << "a segment of 2 MiB";
}

TEST(MachineTest, ExpandableSegmentsTakeTimeByThePage) {
  MachineOptions small = options();
  small.device_bytes = std::int64_t{100} << 20;
  small.alloc_conf.expandable_segments = true;
  small.driver = kDigits;
  Watched w(small);
  w.machine.allocate(std::int64_t{50} << 20, w.compute).reset();  // three pages of 20 MiB
  EXPECT_EQ(w.machine.host_now(), 0);
  const StreamId other = w.machine.lane(Lane::kHostToDevice);
  const Storage there = w.machine.allocate(std::int64_t{70} << 20, other);  // four of its own
  EXPECT_EQ(w.machine.host_now(), 3 * 40 + 4 * 3);
}

TEST(MachineTest, WithAndWithoutConsumersTheTimesAreTheSame) {
  const auto run = [](Machine& machine) {
    const StreamId compute = machine.compute_stream(0);
    const StreamId lane = machine.lane(Lane::kDeviceToHost);
    for (int i = 0; i < 3000; ++i) {
      const Storage storage = machine.allocate(1000, compute);
      const Range range = range_of(storage);
      machine.kernel("a", 0, {}, {&range, 1}, 3 + i % 7);
      machine.wait(Step::kUser, lane, machine.record(Step::kUser, compute));
      machine.copy(Step::kOffload, CopyKind::kDeviceToHost, range, range, lane, i % 500 == 0);
      machine.record_use(Step::kUser, storage, lane);
    }
    return std::pair(machine.drain(), machine.engine().digest());
  };
  Watched watched;
  Machine alone(options());
  EXPECT_EQ(run(watched.machine), run(alone));
}

MachineOptions two_devices() {
  MachineOptions two = options();
  two.devices = 2;
  return two;
}

TEST(MachineTest, EachDeviceHasAPoolOfItsOwn) {
  MachineOptions small = two_devices();
  small.device_bytes = std::int64_t{2} << 20;
  Watched w(small);
  const StreamId there = w.machine.compute_stream(1, 0);
  const Storage here = w.machine.allocate(1 << 20, w.compute);
  Storage other = w.machine.allocate(1 << 20, there);  // it fits: the capacity is each device's
  EXPECT_EQ(here->device, 0u);
  EXPECT_EQ(other->device, 1u);
  EXPECT_EQ(w.machine.pool(0).stats().allocated_bytes.current, 1 << 20);
  EXPECT_EQ(w.machine.pool(1).stats().allocated_bytes.current, 1 << 20);
  EXPECT_GE(other->address - here->address, std::uint64_t{1} << 44);
  w.machine.record_use(Step::kUser, other, w.compute);  // of another device: its own pool waits
  other.reset();
  EXPECT_EQ(w.machine.pool(0).stats().allocated_bytes.current, 1 << 20);
  EXPECT_EQ(w.machine.pool(1).stats().allocated_bytes.current, 0);
  try {
    w.machine.allocate(std::int64_t{4} << 20, there);
    FAIL() << "expected an error";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("GPU 1"), std::string::npos);
  }
}

TEST(MachineTest, EachDeviceHasStreamsOfItsOwnAndTheyRunAtOnce) {
  Watched w(two_devices());
  Machine& m = w.machine;
  EXPECT_EQ(m.devices(), 2u);
  const std::vector<StreamId> there = {m.compute_stream(1, 0), m.compute_stream(1, 1),
                                       m.lane(1, Lane::kDeviceToHost), m.transfer_stream(1, 0)};
  for (const StreamId stream : there) EXPECT_EQ(m.device_of(stream), 1u);
  EXPECT_EQ(m.device_of(m.compute_stream(1)), 0u);
  EXPECT_EQ(m.device_of(m.lane(Lane::kHostToDevice)), 0u);
  EXPECT_EQ(m.transfer_stream(1, 0), there[3]);
  EXPECT_NE(m.transfer_stream(1, 1), there[3]);
  m.kernel("a", 0, {}, {}, 300);
  m.set_current_stream(there[0]);
  m.kernel("b", 0, {}, {}, 300);
  EXPECT_EQ(m.drain(), 305);
  EXPECT_EQ(m.device_stats(0).compute_busy_ns, 300);
  EXPECT_EQ(m.device_stats(1).compute_busy_ns, 300);
}

TEST(MachineTest, APeerCopyIsTheDestinationsAndWhatWaitsForItIsTold) {
  Watched w(two_devices());
  Machine& m = w.machine;
  const StreamId there = m.compute_stream(1, 0);
  const StreamId transfer = m.transfer_stream(1, 3);
  const Range from{100, 400};
  const Range to{9000, 400};
  m.peer_copy(Step::kUser, from, to, 0, transfer);
  const test::LoggedOp copy = w.log.ops.back();
  EXPECT_EQ(copy.kind, Kind::kCopy);
  EXPECT_EQ(copy.copy, CopyKind::kPeer);
  EXPECT_EQ(copy.stream, transfer);
  EXPECT_EQ(copy.reads, std::vector<Range>{from});
  EXPECT_EQ(copy.writes, std::vector<Range>{to});
  const EventHandle fetched = m.record(Step::kUser, transfer);
  m.wait(Step::kUser, m.transfer_stream(1, 0), fetched);  // it computes nothing
  m.wait(Step::kUser, there, fetched);
  m.set_current_stream(there);
  m.kernel("a", 0, {}, {}, 50);
  EXPECT_EQ(m.drain(), 450);
  EXPECT_EQ(m.compute_blocked_on_copies_ns(0), 0);
  EXPECT_EQ(m.compute_blocked_on_copies_ns(1), 395);
  EXPECT_EQ(m.device_stats(1).peer_bytes, 400);
  EXPECT_EQ(m.device_stats(1).peer_busy_ns, 400);
  EXPECT_EQ(m.device_stats(0).peer_bytes, 0);
}

TEST(MachineTest, EachHostThreadHasAClock) {
  Watched w(two_devices());
  Machine& m = w.machine;
  m.kernel("a", 0, {}, {}, 100);
  m.set_host_thread(2);
  EXPECT_EQ(m.host_now(), 0);
  m.host_not_before(m.host_now(0));
  EXPECT_EQ(m.host_now(), 5);
  m.host_not_before(3);  // it never goes back
  m.set_current_stream(m.compute_stream(1, 0));
  m.kernel("b", 0, {}, {}, 100);  // from 5
  EXPECT_EQ(m.host_now(), 10);
  EXPECT_EQ(m.host_now(0), 5);
  EXPECT_EQ(m.host_now(1), 0);
  EXPECT_EQ(m.host_thread(), 2u);
  EXPECT_EQ(m.drain(), 105);
  EXPECT_EQ(m.host_now(), 105);
  m.set_host_thread(0);
  EXPECT_EQ(m.host_now(), 5);
}

TEST(MachineTest, AThreadBehindTheEngineIssuesWhereTheEngineStands) {
  Watched w(two_devices());
  w.machine.kernel("a", 0, {}, {}, 300);
  w.machine.drain();
  w.machine.set_host_thread(1);
  w.machine.kernel("b", 0, {}, {}, 10);
  w.machine.wait(Step::kUser, w.compute, w.machine.record(Step::kUser, w.compute));
  EXPECT_EQ(w.machine.host_now(), 5);  // it was not held up
  EXPECT_EQ(w.machine.drain(), 310);
}

TEST(MachineTest, TheHostIsAThousandLaunchesAheadOfEachDevice) {
  MachineOptions fast = two_devices();
  fast.launch_ns = 1;
  Watched w(fast);
  const auto launch = [&w](int launches) {
    for (int i = 0; i < launches; ++i) w.machine.kernel("a", 0, {}, {}, 1000);
  };
  launch(1000);
  w.machine.set_current_stream(w.machine.compute_stream(1, 0));
  launch(1000);
  EXPECT_EQ(w.machine.host_now(), 2000);
  launch(200);
  EXPECT_GT(w.machine.host_now(), 100'000);
}

// Fetches on two devices from two others; when the last byte is there.
Time both_fetched(const MachineOptions& options) {
  Machine machine(options);
  const Range bytes{0, 1200};
  machine.peer_copy(Step::kUser, bytes, bytes, 2, machine.transfer_stream(0, 0));
  machine.peer_copy(Step::kUser, bytes, bytes, 3, machine.transfer_stream(1, 0));
  return machine.drain();
}

TEST(MachineTest, DevicesShareTheirPortsInOrderAndPeerLinksPassThemBy) {
  MachineOptions four = options();
  four.launch_ns = 0;
  four.devices = 4;
  four.port = {.up_bytes_per_us = 900, .down_bytes_per_us = 600};
  EXPECT_EQ(both_fetched(four), 1200);
  four.devices_per_port = 1;
  EXPECT_EQ(both_fetched(four), 2000);
  four.devices_per_port = 2;  // 0 and 1 share one, 2 and 3 the other
  EXPECT_EQ(both_fetched(four), 4000);
  four.peer = {.bytes_per_us = 10'000, .latency_ns = 7};
  EXPECT_EQ(both_fetched(four), 127);
}

TEST(MachineTest, ALoneDeviceHasItsPortToItself) {
  MachineOptions one = options();
  one.devices_per_port = 2;
  one.port = {.up_bytes_per_us = 1, .down_bytes_per_us = 1};
  Watched w(one);
  const StreamId lane = w.machine.lane(Lane::kDeviceToHost);
  w.machine.copy(Step::kOffload, CopyKind::kDeviceToHost, {0, 1000}, {0, 1000}, lane, false);
  EXPECT_EQ(w.machine.drain(), 1000);
}

}  // namespace
}  // namespace ferry::sim
