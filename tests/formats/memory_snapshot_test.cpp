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

// Whatever stands beside what is used, and wherever a dictionary stands: integers of any size, deep
// lists, and what unpickling would make, which nobody makes.
TEST(MemorySnapshot, WhatNobodyAsksForIsSkipped) {
  using namespace std::string_literals;
  const std::string bytes = to_pickle(sample());
  const std::string key = "X\x0d\x00\x00\x00not asked for"s;
  const std::string unused[] = {
      "\x8b\x00\x02\x00\x00"s + std::string(512, '\7'),
      "G\x7f\xf0\x00\x00\x00\x00\x00\x00"s,
      std::string(5000, ']') + std::string(4999, 'a'),
      "cposix\nsystem\nX\x02\x00\x00\x00ls\x85R}b"s,
      "ccollections\nOrderedDict\n)R(K\x01K\x02u"s,
      "X\x00\x00\x02\x00"s + std::string(0x20000, 'x'),
      "(K\x01\x91"s,
  };
  const std::string begin = "}(";
  int dictionaries = 0;
  for (std::size_t at = bytes.find(begin); at != bytes.npos; at = bytes.find(begin, at + 1)) {
    ++dictionaries;
    for (const std::string& value : unused) {
      std::string more = bytes;
      more.insert(at + begin.size(), key + value);
      ASSERT_EQ(to_pickle(parse_memory_snapshot(more, "file")), bytes) << dictionaries;
    }
  }
  EXPECT_GE(dictionaries, 8) << "the root, a segment, its blocks, entries, settings";
}

// A mark of a program's own on the time line.
TEST(MemorySnapshot, OfWhatIsNoDoingOfTheAllocatorsNothingIsAsked) {
  pickle::Writer writer;
  writer.begin_dict();
  writer.text("segments");
  writer.begin_list();
  writer.end_list();
  writer.text("device_traces");
  writer.begin_list();
  writer.begin_list();
  writer.begin_dict();
  writer.text("action");
  writer.text("user_defined");
  writer.text("size");
  writer.text("large");
  writer.text("time_us");
  writer.integer(-1);
  writer.end_dict();
  writer.end_list();
  writer.end_list();
  writer.text("allocator_settings");
  writer.begin_dict();
  writer.text("PYTORCH_CUDA_ALLOC_CONF");
  writer.text("pinned_use_background_threads:True,later:[1:2,3],max_split_size_mb:40");
  writer.end_dict();
  writer.end_dict();
  const MemorySnapshot snapshot = parse_memory_snapshot(writer.finish(), "file");
  EXPECT_EQ(snapshot.traces.at(0).at(0).bytes, 0);
  EXPECT_EQ(snapshot.traces[0][0].time_us, 0);
  EXPECT_EQ(snapshot.conf.max_split_bytes, 40 << 20);
}

TEST(MemorySnapshot, BlocksFillTheirSegment) {
  const std::string why = "file: segment 0: blocks: expected blocks that fill the segment";
  EXPECT_EQ(refusal([](auto& s) { s.segments[0].blocks.pop_back(); }), why);
  EXPECT_EQ(refusal([](auto& s) { s.segments[0].blocks[2].bytes += 512; }), why);
  EXPECT_EQ(refusal([](auto& s) { s.segments[0].blocks[0].bytes = 0; }), why);
}

TEST(MemorySnapshot, SegmentsDoNotMeet) {
  EXPECT_EQ(refusal([](auto& s) {
              s.segments.push_back(s.segments[0]);
              s.segments[1].address += 512;
            }),
            "file: segments: expected no overlap, found two at 139637976728064");
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
