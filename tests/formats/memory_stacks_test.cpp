#include "formats/memory_stacks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "formats/pickle_write.h"

namespace ferry {
namespace {

constexpr std::uint64_t kAddress = 0x7f0000000000;

// Two entries and a block of one stack, and an entry of another.
MemorySnapshot sample() {
  MemorySnapshot snapshot;
  MemorySegment segment;
  segment.address = kAddress;
  segment.bytes = 1024;
  segment.blocks = {{kAddress, 1024, 900, BlockState::kAllocated, 1}};
  snapshot.segments = {segment};
  snapshot.frames = {{"train.py", "step", 12}, {"model.py", "forward", 7}};
  snapshot.stacks = {{}, {1, 0}, {0}};
  MemoryEvent event;
  event.action = MemoryAction::kAlloc;
  event.address = kAddress;
  event.bytes = 900;
  for (const StackId stack : {1u, 1u, kNoStack, 2u}) {
    event.stack = stack;
    snapshot.traces.resize(1);
    snapshot.traces[0].push_back(event);
  }
  snapshot.marks = {{"Optimizer.step#SGD.step", true, 5}, {"Optimizer.step#SGD.step", false, 9}};
  return snapshot;
}

std::string text_of(const MemorySnapshot& snapshot, StackId stack) {
  std::string text;
  for (const std::uint32_t number : snapshot.stacks.at(stack)) {
    const MemoryFrame& frame = snapshot.frames.at(number);
    text += frame.file + ":" + std::to_string(frame.line) + " " + frame.function + "; ";
  }
  return text;
}

TEST(MemoryStacks, AreReadAsTheyWereWritten) {
  const std::string bytes = to_pickle(sample());
  const MemorySnapshot read = parse_memory_snapshot(bytes, "file");
  const auto& trace = read.traces.at(0);
  EXPECT_EQ(text_of(read, trace.at(0).stack), "model.py:7 forward; train.py:12 step; ");
  EXPECT_EQ(text_of(read, trace.at(3).stack), "train.py:12 step; ");
  EXPECT_EQ(trace.at(1).stack, trace.at(0).stack);
  EXPECT_EQ(trace.at(2).stack, kNoStack);
  EXPECT_EQ(read.segments.at(0).blocks.at(0).stack, trace.at(0).stack);
  ASSERT_EQ(read.marks.size(), 2u);
  EXPECT_FALSE(read.marks[1].begins);
  EXPECT_EQ(read.marks[1].time_us, 9);
  EXPECT_EQ(to_pickle(read), bytes);
}

// As PyTorch does. Otherwise a snapshot with a million entries would be as large as its stacks.
TEST(MemoryStacks, AStackIsWrittenOnce) {
  MemorySnapshot snapshot = sample();
  const std::size_t before = to_pickle(snapshot).size();
  snapshot.stacks[1].assign(1000, 0);
  const std::size_t once = to_pickle(snapshot).size();
  EXPECT_GT(once, before + 1000);
  EXPECT_LT(once, before + 2 * 5 * 1000) << "five bytes for a frame that is known";
}

// A writer without PyTorch's sharing: equal stacks in several places.
TEST(MemoryStacks, EqualStacksAreOne) {
  MemorySnapshot snapshot = sample();
  snapshot.stacks = {{}, {1, 0}, {1, 0}};
  const MemorySnapshot read = parse_memory_snapshot(to_pickle(snapshot), "file");
  EXPECT_EQ(read.stacks.size(), 2u);
  EXPECT_EQ(read.traces[0][3].stack, read.traces[0][0].stack);
}

// Only explanations need stacks: a replay must not fail because of one.
TEST(MemoryStacks, WhatIsNoStackIsEmpty) {
  pickle::Writer writer;
  writer.begin_dict();
  writer.text("frames");
  writer.begin_list();
  writer.begin_dict();
  writer.text("filename");
  writer.integer(3);
  writer.text("line");
  writer.text("twelve");
  writer.end_dict();
  writer.none();
  writer.end_list();
  writer.text("external_annotations");
  writer.begin_list();
  writer.integer(1);
  writer.begin_dict();
  writer.text("stage");
  writer.text("MIDDLE");
  writer.end_dict();
  writer.end_list();
  writer.end_dict();
  const std::string bytes = writer.finish();
  const pickle::Document document = pickle::parse(bytes, "file");
  StackReader reader(document);
  const StackId stack = reader.stack_of(document.root());
  MemorySnapshot snapshot;
  reader.move_to(snapshot);
  EXPECT_EQ(text_of(snapshot, stack), ":0 ; :0 ; ");
  EXPECT_TRUE(read_marks(document).empty());
}

}  // namespace
}  // namespace ferry
