// The classic hazards of streams, a few calls each. Buffers are letters: 100 bytes apart, 100 long.
#include "sim/check/happens_before.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry::check {
namespace {

using Ranges = std::vector<Range>;

constexpr Range kX{1000, 100}, kY{1100, 100}, kZ{1200, 100};
constexpr Range kPinned{kHostBase, 100};

// Streams are numbers. Every call is one op, as the host issues it.
class Calls {
 public:
  Calls() = default;
  explicit Calls(HappensBefore::Options options) : check_(options) {}

  Calls& kernel(std::uint32_t stream, const Ranges& reads, const Ranges& writes,
                std::string_view name = "k") {
    return give(StreamOpKind::kKernel, stream, [&](StreamOp& op) {
      op.reads = reads;
      op.writes = writes;
      op.name = name;
    });
  }
  Calls& copy(std::uint32_t stream, Range from, Range to, Step step = Step::kUser) {
    return give(StreamOpKind::kCopy, stream, [&](StreamOp& op) {
      op.reads = {&from, 1};
      op.writes = {&to, 1};
      op.step = step;
    });
  }
  Calls& record(std::uint32_t event, std::uint32_t stream) {
    return ordering(StreamOpKind::kRecord, stream, event);
  }
  Calls& wait(std::uint32_t event, std::uint32_t stream) {
    return ordering(StreamOpKind::kWait, stream, event);
  }
  Calls& event_sync(std::uint32_t event) { return ordering(StreamOpKind::kEventSync, 0, event); }
  Calls& stream_sync(std::uint32_t s) { return ordering(StreamOpKind::kStreamSync, s, 0); }
  Calls& alloc(std::uint32_t stream, Range range) {
    return memory(StreamOpKind::kAlloc, stream, range);
  }
  Calls& free(Range range) { return memory(StreamOpKind::kFree, 0, range); }
  Calls& record_use(std::uint32_t stream, Range range) {
    return memory(StreamOpKind::kRecordUse, stream, range);
  }
  Calls& use_until(std::uint32_t event, Range range) {
    return give(StreamOpKind::kRecordUse, 0, [&](StreamOp& op) {
      op.event = EventId{event};
      op.until_event = true;
      op.range = range;
    });
  }
  Calls& host_read(Range range) { return memory(StreamOpKind::kHostRead, 0, range); }
  Calls& host_write(Range range) { return memory(StreamOpKind::kHostWrite, 0, range); }
  Calls& forget(Range range) { return check_.forget(range), *this; }
  Calls& end_reuse() { return check_.end_reuse(), *this; }
  Calls& destroy(std::uint32_t event) { return check_.destroy_event(EventId{event}), *this; }

  // "kind earlier→later" of each report, with "xN" where it was seen N times.
  std::string found() const {
    std::string all;
    for (const Hazard& h : check_.hazards()) {
      if (!all.empty()) all += "; ";
      all += std::string(name(h.kind)) + " " + std::to_string(h.earlier.op) + "→" +
             std::to_string(h.later.op);
      if (h.count > 1) all += " x" + std::to_string(h.count);
    }
    return all;
  }
  const std::vector<Hazard>& hazards() const { return check_.hazards(); }

 private:
  template <class Fill>
  Calls& give(StreamOpKind kind, std::uint32_t stream, Fill fill) {
    StreamOp op;
    op.kind = kind;
    op.stream = StreamId{stream};
    fill(op);
    check_(op);
    return *this;
  }
  Calls& ordering(StreamOpKind kind, std::uint32_t stream, std::uint32_t event) {
    return give(kind, stream, [&](StreamOp& op) { op.event = EventId{event}; });
  }
  Calls& memory(StreamOpKind kind, std::uint32_t stream, Range range) {
    return give(kind, stream, [&](StreamOp& op) { op.range = range; });
  }
  HappensBefore check_;
};

TEST(HappensBefore, OneStreamIsInOrder) {
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).kernel(0, {kX}, {kX}).kernel(0, {}, {kX}).found(), "");
}

TEST(HappensBefore, AMissingProducerWait) {
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).kernel(1, {kX}, {kY}).found(), "read after write 0→1");
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).record(1, 0).wait(1, 1).kernel(1, {kX}, {kY}).found(), "");
}

TEST(HappensBefore, AWriteConflictsWithEveryReadSinceTheLastWrite) {
  EXPECT_EQ(Calls().kernel(0, {kX}, {}).kernel(1, {kX}, {}).kernel(2, {}, {kX}).found(),
            "write after read 0→2; write after read 1→2");
}

TEST(HappensBefore, AWriteConflictsWithTheLastWriteWhereThereAreNoReads) {
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).kernel(1, {}, {kX}).found(), "write after write 0→1");
}

// A program may write in place what was saved and will not be unpacked.
TEST(HappensBefore, ATornOffloadIsReportedOnceItIsRead) {
  const auto tear = [](Calls& calls, Step step) -> Calls& {
    calls.kernel(0, {}, {kX}).record(1, 0).wait(1, 1).copy(1, kX, kPinned, step);
    return calls.kernel(0, {}, {kX}, "write_");
  };
  Calls offload, user;
  EXPECT_EQ(tear(offload, Step::kOffload).found(), "");
  EXPECT_EQ(offload.copy(1, kPinned, kY, Step::kReload).found(), "write after read 3→4");
  EXPECT_EQ(tear(user, Step::kUser).found(), "write after read 3→4");
}

TEST(HappensBefore, AWriteUnderAnOffloadThatWasReadIsReportedAtOnce) {
  EXPECT_EQ(Calls()
                .copy(1, kX, kPinned, Step::kOffload)
                .copy(1, kPinned, kY, Step::kReload)
                .kernel(0, {}, {kX}, "write_")
                .found(),
            "write after read 0→2");
}

TEST(HappensBefore, ReadsDoNotConflict) {
  EXPECT_EQ(Calls().kernel(0, {kX}, {}).kernel(1, {kX}, {}).found(), "");
}

TEST(HappensBefore, AnEventIsASnapshot) {
  // The record came before the write: it says nothing about it.
  EXPECT_EQ(Calls().record(1, 0).kernel(0, {}, {kX}).wait(1, 1).kernel(1, {kX}, {}).found(),
            "read after write 1→3");
}

TEST(HappensBefore, ANewRecordReplacesTheOld) {
  // Event 1 first holds the write on stream 0, then only what stream 2 did.
  EXPECT_EQ(
      Calls().kernel(0, {}, {kX}).record(1, 0).record(1, 2).wait(1, 1).kernel(1, {kX}, {}).found(),
      "read after write 0→4");
}

TEST(HappensBefore, AWaitTakesTheRecordOfItsTime) {
  EXPECT_EQ(
      Calls().kernel(0, {}, {kX}).record(1, 0).wait(1, 1).record(1, 2).kernel(1, {kX}, {}).found(),
      "");
}

TEST(HappensBefore, AWaitBeforeTheRecordIsNoWait) {
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).wait(1, 1).record(1, 0).kernel(1, {kX}, {}).found(),
            "read after write 0→3");
}

TEST(HappensBefore, ADestroyedEventOrdersNothing) {
  EXPECT_EQ(
      Calls().kernel(0, {}, {kX}).record(1, 0).destroy(1).wait(1, 1).kernel(1, {kX}, {}).found(),
      "read after write 0→3");
}

TEST(HappensBefore, WaitsAreTransitive) {
  // 0 → 1 → 2, and stream 1 does nothing but wait.
  EXPECT_EQ(Calls()
                .kernel(0, {}, {kX})
                .record(1, 0)
                .wait(1, 1)
                .record(2, 1)
                .wait(2, 2)
                .kernel(2, {kX}, {})
                .found(),
            "");
}

TEST(HappensBefore, AHostSyncOrdersAllThatIsIssuedLater) {
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).record(1, 0).event_sync(1).kernel(1, {kX}, {}).found(), "");
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).stream_sync(0).kernel(1, {kX}, {}).found(), "");
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).event_sync(1).kernel(1, {kX}, {}).found(),
            "read after write 0→2");
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).stream_sync(2).kernel(1, {kX}, {}).found(),
            "read after write 0→2");
}

TEST(HappensBefore, AHostSyncDoesNotOrderWhatWasIssuedBefore) {
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).kernel(1, {}, {kX}).stream_sync(0).found(),
            "write after write 0→1");
}

TEST(HappensBefore, TheHostReadsBytesThatACopyMayStillWrite) {
  EXPECT_EQ(Calls().copy(1, kX, kPinned).host_read(kPinned).found(), "read after write 0→1");
  EXPECT_EQ(Calls().copy(1, kX, kPinned).stream_sync(1).host_read(kPinned).found(), "");
}

TEST(HappensBefore, APinnedBufferIsRewrittenUnderACopy) {
  EXPECT_EQ(Calls().copy(1, kPinned, kX).host_write(kPinned).found(), "rewrite under a copy 0→1");
  EXPECT_EQ(Calls().copy(1, kPinned, kX).copy(2, kY, kPinned).found(), "rewrite under a copy 0→1");
  EXPECT_EQ(Calls().copy(1, kPinned, kX).stream_sync(1).host_write(kPinned).found(), "");
  EXPECT_EQ(Calls().host_write(kPinned).copy(1, kPinned, kX).found(), "");
}

TEST(HappensBefore, AReloadBeforeItsOffload) {
  Calls run;
  run.copy(1, kX, kPinned, Step::kOffload).copy(2, kPinned, kY, Step::kReload);
  EXPECT_EQ(run.found(), "read after write 0→1");
  EXPECT_EQ(run.hazards()[0].missing, Step::kReloadAfterOffload);
}

TEST(HappensBefore, AFreedBlockIsReusedByAnotherStream) {
  Calls run;
  run.alloc(0, kX).kernel(0, {}, {kX}).record(1, 0).wait(1, 1);
  run.copy(1, kX, kPinned, Step::kOffload).free(kX).alloc(0, kX).kernel(0, {}, {kX});
  EXPECT_EQ(run.found(), "reuse 4→7");
  EXPECT_EQ(run.hazards()[0].missing, Step::kEvict);
}

TEST(HappensBefore, AReusedPartOfABlockConflictsInItsOwnBytesOnly) {
  Calls run;
  run.alloc(0, kX).kernel(1, {kX}, {}).free(kX).alloc(0, {1040, 20}).kernel(0, {}, {{1040, 20}});
  EXPECT_EQ(run.found(), "reuse 1→4");
  EXPECT_EQ(run.hazards()[0].range, (Range{1040, 20}));
}

TEST(HappensBefore, ARecordedUseProtectsUntilTheFree) {
  EXPECT_EQ(Calls()
                .alloc(0, kX)
                .kernel(1, {kX}, {})
                .record_use(1, kX)
                .free(kX)
                .alloc(0, kX)
                .kernel(0, {}, {kX})
                .found(),
            "");
  // Work that the stream got between the record_use and the free is covered, too.
  EXPECT_EQ(Calls()
                .alloc(0, kX)
                .record_use(1, kX)
                .kernel(1, {kX}, {})
                .free(kX)
                .alloc(0, kX)
                .kernel(0, {}, {kX})
                .found(),
            "");
  // A use of any part is a use of the block.
  EXPECT_EQ(Calls()
                .alloc(0, kX)
                .kernel(1, {kX}, {})
                .record_use(1, {1010, 4})
                .free(kX)
                .alloc(0, kX)
                .kernel(0, {}, {kX})
                .found(),
            "");
}

TEST(HappensBefore, ARecordedUseDoesNotProtectWhatItDoesNotSay) {
  // Another stream.
  EXPECT_EQ(Calls()
                .alloc(0, kX)
                .kernel(1, {kX}, {})
                .record_use(2, kX)
                .free(kX)
                .alloc(0, kX)
                .kernel(0, {}, {kX})
                .found(),
            "reuse 1→5");
  // A use after the free.
  EXPECT_EQ(Calls()
                .alloc(0, kX)
                .record_use(1, kX)
                .free(kX)
                .kernel(1, {kX}, {})
                .alloc(0, kX)
                .kernel(0, {}, {kX})
                .found(),
            "reuse 3→5");
  // The block's own stream: the pool ignores it.
  EXPECT_EQ(Calls()
                .alloc(1, kX)
                .kernel(1, {kX}, {})
                .record_use(1, kX)
                .free(kX)
                .alloc(0, kX)
                .kernel(0, {}, {kX})
                .found(),
            "reuse 1→5");
  // A use of the earlier life.
  EXPECT_EQ(Calls()
                .alloc(0, kX)
                .record_use(1, kX)
                .free(kX)
                .alloc(0, kX)
                .kernel(1, {kX}, {})
                .free(kX)
                .alloc(0, kX)
                .kernel(0, {}, {kX})
                .found(),
            "reuse 4→7");
}

TEST(HappensBefore, ARecordedUseCoversWhatItsStreamWaitedFor) {
  EXPECT_EQ(Calls()
                .alloc(0, kX)
                .kernel(2, {}, {kX})
                .record(1, 2)
                .wait(1, 1)
                .kernel(1, {kX}, {})
                .record_use(1, kX)
                .free(kX)
                .alloc(0, kX)
                .kernel(0, {}, {kX})
                .found(),
            "");
}

// `gives` says what the pool is told of the kernel on stream 1.
std::string given_out_again(const std::function<void(Calls&)>& uses_and_tells,
                            HappensBefore::Options options = {}) {
  Calls calls(options);
  calls.alloc(0, kX);
  uses_and_tells(calls);
  return calls.free(kX).alloc(0, kX).kernel(0, {}, {kX}).found();
}

TEST(HappensBefore, AUseUntilAnEventProtectsFromWhatTheEventStandsForAlone) {
  const auto used = [](Calls& c) -> Calls& { return c.kernel(1, {kX}, {}); };
  EXPECT_EQ(given_out_again([&](Calls& c) { used(c).record(1, 1).use_until(1, kX); }), "");
  // It came before the use, was never recorded, or is gone.
  EXPECT_EQ(given_out_again([&](Calls& c) { used(c.record(1, 1)).use_until(1, kX); }), "reuse 2→6");
  EXPECT_EQ(given_out_again([&](Calls& c) { used(c).use_until(1, kX); }), "reuse 1→5");
  EXPECT_EQ(given_out_again([&](Calls& c) { used(c).record(1, 1).destroy(1).use_until(1, kX); }),
            "reuse 1→6");
  // What the event records later is not what the pool was told of.
  EXPECT_EQ(given_out_again([&](Calls& c) { used(c.record(1, 1).use_until(1, kX)).record(1, 1); }),
            "reuse 3→7");
  // Nor is it what another block's pool was told, or the block's earlier life.
  EXPECT_EQ(given_out_again([&](Calls& c) { used(c).record(1, 1).use_until(1, kY); }), "reuse 1→6");
  EXPECT_EQ(given_out_again([&](Calls& c) {
              used(c).record(1, 1).use_until(1, kX).free(kX).alloc(0, kX);
              used(c);
            }),
            "reuse 6→9");
  // Of the block's own stream as well, and of two events both.
  EXPECT_EQ(given_out_again([&](Calls& c) {
              used(c).record(1, 1).kernel(2, {kX}, {}).record(2, 2);
              c.use_until(1, kX).use_until(2, kX);
            }),
            "");
}

TEST(HappensBefore, AUseUntilAnEventHoldsAFreeThatGivesOutAtOnce) {
  const HappensBefore::Options strict{.reuse_at_free = true};
  const auto used = [](Calls& c) -> Calls& { return c.kernel(1, {kX}, {}); };
  EXPECT_EQ(given_out_again([&](Calls& c) { used(c).record(1, 1).use_until(1, kX); }, strict), "");
  EXPECT_EQ(given_out_again([&](Calls& c) { used(c.record(1, 1)).use_until(1, kX); }, strict),
            "free under a use 2→4");
}

TEST(HappensBefore, ForgottenBytesStartAnew) {
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).forget(kX).kernel(1, {kX}, {}).found(), "");
}

TEST(HappensBefore, OverlappingRangesWithDifferentStarts) {
  Calls run;
  run.kernel(0, {}, {{1000, 100}}).kernel(1, {{1090, 100}}, {});
  EXPECT_EQ(run.found(), "read after write 0→1");
  EXPECT_EQ(run.hazards()[0].range, (Range{1090, 10}));
  EXPECT_EQ(Calls().kernel(0, {}, {{1000, 90}}).kernel(1, {{1090, 100}}, {}).found(), "");
  EXPECT_EQ(Calls().kernel(0, {}, {{1000, 90}}).kernel(1, {{1010, 0}}, {}).found(), "");
}

TEST(HappensBefore, APairOfOpsIsOneReportHoweverManyBuffersTheyMeetOn) {
  Calls run;
  run.kernel(0, {}, {kX, kZ}).kernel(1, {kX, kZ}, {kX});
  EXPECT_EQ(run.found(), "read after write 0→1");
  EXPECT_EQ(run.hazards()[0].range, kX);
}

TEST(HappensBefore, AfterAReportTheLaterAccessStands) {
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).kernel(1, {}, {kX}).kernel(1, {kX}, {}).found(),
            "write after write 0→1");
  EXPECT_EQ(Calls().kernel(0, {}, {kX}).kernel(1, {kX}, {}, "a").kernel(1, {kX}, {kX}, "b").found(),
            "read after write 0→1");
}

TEST(HappensBefore, TheSameMistakeAgainRaisesItsCount) {
  Calls run;
  for (int i = 0; i < 3; ++i) run.kernel(0, {}, {kX}).kernel(1, {kX}, {}).stream_sync(1);
  EXPECT_EQ(run.found(), "read after write 0→1 x3");
}

TEST(HappensBefore, HostMemoryFreedUnderACopyWhereThePoolGivesItBackAtOnce) {
  const HappensBefore::Options strict{.host_free_waits = true};
  EXPECT_EQ(Calls(strict).copy(1, kPinned, kX).free(kPinned).found(), "free under a copy 0→1");
  EXPECT_EQ(Calls(strict).copy(1, kPinned, kX).stream_sync(1).free(kPinned).found(), "");
  EXPECT_EQ(Calls().copy(1, kPinned, kX).free(kPinned).found(), "");
}

// Whoever allocates next, on the stream that the bytes belong to, gets them.
TEST(HappensBefore, ABufferFreedUnderAUseWhereItsBytesAreGivenOutAtOnce) {
  const HappensBefore::Options strict{.reuse_at_free = true};
  const auto used_and = [&](auto more) {
    Calls calls(strict);
    calls.alloc(0, kX).kernel(1, {kX}, {kY});
    more(calls);
    return calls.found();
  };
  EXPECT_EQ(used_and([](Calls& c) { c.free(kX); }), "free under a use 1→2");
  EXPECT_EQ(used_and([](Calls& c) { c.record_use(1, kX).free(kX); }), "");
  EXPECT_EQ(used_and([](Calls& c) { c.record(1, 1).wait(1, 0).free(kX); }), "");
  EXPECT_EQ(used_and([](Calls& c) { c.record(1, 1).free(kX).wait(1, 0); }), "free under a use 1→3");
  EXPECT_EQ(used_and([](Calls& c) { c.stream_sync(1).free(kX); }), "");
  EXPECT_EQ(Calls().alloc(0, kX).kernel(1, {kX}, {kY}).free(kX).found(), "");
  // Work of the buffer's own stream comes before whatever gets the bytes there.
  EXPECT_EQ(Calls(strict).alloc(0, kX).kernel(0, {}, {kX}).free(kX).found(), "");
  // It is reported once, there and not where somebody else writes the bytes.
  EXPECT_EQ(used_and([](Calls& c) { c.free(kX).alloc(0, kX).kernel(0, {}, {kX}); }),
            "free under a use 1→2");
}

TEST(HappensBefore, NobodyGetsWhatIsFreedAfterTheEnd) {
  Calls calls(HappensBefore::Options{.reuse_at_free = true});
  EXPECT_EQ(calls.alloc(0, kX).kernel(1, {kX}, {kY}).end_reuse().free(kX).found(), "");
}

TEST(HappensBefore, ManyStreamsAndLargeIds) {
  Calls run;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::uint32_t stream = i * 40000000;
    run.wait(i, stream).kernel(stream, {kX}, {kX}).record(i + 1, stream);
  }
  EXPECT_EQ(run.kernel(5, {kX}, {}).found(), "read after write 298→300");
}

TEST(HappensBefore, AReportIsOneLine) {
  Calls run;
  run.copy(2, kPinned, kX, Step::kReload).kernel(0, {kX}, {kY}, "MmBackward0");
  ASSERT_EQ(run.hazards().size(), 1u);
  EXPECT_EQ(to_string(run.hazards()[0]),
            "`consume` missing: `reload` #0 (stream 2) → MmBackward0 #1 (stream 0): "
            "read after write of 100 bytes at 0x3e8");
}

}  // namespace
}  // namespace ferry::check
