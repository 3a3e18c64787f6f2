#include "formats/memory_snapshot.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "formats/error.h"
#include "formats/pickle_write.h"

namespace ferry {
namespace {

constexpr std::uint64_t kAddress = 0x7f0000000000;

MemorySnapshot sample() {
  MemorySnapshot snapshot;
  snapshot.segments = {{.device = 0,
                        .address = kAddress,
                        .bytes = 2 << 20,
                        .stream = 7,
                        .small = true,
                        .blocks = {{kAddress, 512, 100, BlockState::kAllocated},
                                   {kAddress + 512, 1024, 900, BlockState::kPendingFree},
                                   {kAddress + 1536, (2 << 20) - 1536, 0, BlockState::kInactive}}}};
  snapshot.traces = {{{MemoryAction::kSegmentAlloc, kAddress, 2 << 20, 7, 5},
                      {MemoryAction::kAlloc, kAddress, 100, 7, 6},
                      {MemoryAction::kOom, 4096, 1 << 30, 7, 7}},
                     {}};
  snapshot.conf = parse_alloc_conf(
      "max_split_size_mb:40,garbage_collection_threshold:0.5,roundup_power2_divisions:4", "conf");
  return snapshot;
}

TEST(MemorySnapshot, IsReadAsItWasWritten) {
  const std::string bytes = to_pickle(sample());
  const MemorySnapshot read = parse_memory_snapshot(bytes, "file");
  ASSERT_EQ(read.segments.size(), 1u);
  EXPECT_EQ(read.segments[0].blocks, sample().segments[0].blocks);
  EXPECT_EQ(read.segments[0].stream, 7u);
  EXPECT_TRUE(read.segments[0].small);
  ASSERT_EQ(read.traces.size(), 2u);
  ASSERT_EQ(read.traces[0].size(), 3u);
  EXPECT_EQ(read.traces[0][2].action, MemoryAction::kOom);
  EXPECT_EQ(read.traces[0][2].address, 4096u);
  EXPECT_EQ(read.conf, sample().conf);
  EXPECT_EQ(to_pickle(read), bytes);
}

std::string refusal(const std::function<void(MemorySnapshot&)>& spoil) {
  MemorySnapshot snapshot = sample();
  spoil(snapshot);
  try {
    parse_memory_snapshot(to_pickle(snapshot), "file");
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

TEST(MemorySnapshot, BlocksFillTheirSegment) {
  const std::string why = "file: segment 0: blocks: expected such as fill the segment";
  EXPECT_EQ(refusal([](auto& s) { s.segments[0].blocks.pop_back(); }), why);
  EXPECT_EQ(refusal([](auto& s) { s.segments[0].blocks[2].bytes += 512; }), why);
  EXPECT_EQ(refusal([](auto& s) { s.segments[0].blocks[0].bytes = 0; }), why);
}

TEST(MemorySnapshot, SegmentsDoNotMeet) {
  EXPECT_EQ(refusal([](auto& s) {
              s.segments.push_back(s.segments[0]);
              s.segments[1].address += 512;
            }),
            "file: segments: expected such as do not meet, found two at 139637976728064");
}

TEST(MemorySnapshot, QuantitiesHaveLimits) {
  EXPECT_EQ(refusal([](auto& s) { s.traces[0][1].bytes = -1; }),
            "file: device_traces 0, entry 1: size: expected 0 to 1125899906842624, found -1");
  EXPECT_EQ(refusal([](auto& s) { s.segments[0].device = 5000; }),
            "file: segment 0: device: expected 0 to 1023, found 5000");
}

TEST(MemorySnapshot, WhatIsMissingIsNamed) {
  pickle::Writer writer;
  writer.begin_dict();
  writer.text("segments");
  writer.begin_list();
  writer.begin_dict();
  writer.text("device");
  writer.text("zero");
  writer.end_dict();
  writer.end_list();
  writer.end_dict();
  try {
    parse_memory_snapshot(writer.finish(), "file");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "file: segment 0: device: expected an integer, found a text");
  }
}

}  // namespace
}  // namespace ferry
