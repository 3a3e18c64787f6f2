#include "formats/alloc_conf.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/error.h"

namespace ferry {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

AllocConf parse(const std::string& text) { return parse_alloc_conf(text, "--alloc-conf"); }

std::string refusal(const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

TEST(AllocConf, NothingIsTheUsual) {
  EXPECT_EQ(parse(""), AllocConf{});
  EXPECT_EQ(to_string(AllocConf{}), "");
  EXPECT_EQ(AllocConf{}.non_split_rounding_bytes(), 20 * kMiB);
}

TEST(AllocConf, EveryOptionIsReadAndWritten) {
  const AllocConf conf = parse(
      " expandable_segments : True, large_segment_size_mb:40,max_split_size_mb:128,"
      "max_non_split_rounding_mb:64,roundup_power2_divisions:4,garbage_collection_threshold:0.6,"
      "per_process_memory_fraction:0.25");
  EXPECT_TRUE(conf.expandable_segments);
  EXPECT_EQ(conf.large_segment_bytes, 40 * kMiB);
  EXPECT_EQ(conf.max_split_bytes, 128 * kMiB);
  EXPECT_EQ(conf.non_split_rounding_bytes(), 64 * kMiB);
  EXPECT_EQ(conf.divisions_for(1), 4);
  EXPECT_EQ(conf.garbage_collection_threshold, 0.6);
  EXPECT_EQ(conf.per_process_memory_fraction, 0.25);
  EXPECT_EQ(parse(to_string(conf)), conf);
}

TEST(AllocConf, OfAnOptionTheLastCounts) {
  EXPECT_EQ(parse("max_split_size_mb:20,max_split_size_mb:30").max_split_bytes, 30 * kMiB);
}

TEST(AllocConf, DivisionsBelowTheFirstSizeAreItsOwnAndBetweenSizesNone) {
  const AllocConf conf = parse("roundup_power2_divisions:[64:8,256:4,>:2]");
  EXPECT_EQ(conf.divisions_for(1), 8);
  EXPECT_EQ(conf.divisions_for(100 * kMiB), 8);
  EXPECT_EQ(conf.divisions_for(128 * kMiB), 0);
  EXPECT_EQ(conf.divisions_for(256 * kMiB), 4);
  EXPECT_EQ(conf.divisions_for(512 * kMiB), 2);
  EXPECT_EQ(conf.divisions_for(std::int64_t{1} << 40), 2);
}

TEST(AllocConf, WhatTakesTimeAloneMeansNothing) {
  EXPECT_EQ(parse("backend:native,release_lock_on_cudamalloc:True,pinned_num_register_threads:8,"
                  "graph_capture_record_stream_reuse:True,pinned_use_cuda_host_register:True,"
                  "pinned_use_background_threads:False,pinned_reserve_segment_size_mb:0"),
            AllocConf{});
}

TEST(AllocConf, RefusesWithTheOptionAndWhatWasExpected) {
  const struct {
    const char* text;
    const char* refusal;
  } cases[] = {
      {"max_split_size_mb", "max_split_size_mb: expected ':', found the end"},
      {"max_split_size_mb:",
       "max_split_size_mb: expected MiB, at least large_segment_size_mb, found the end"},
      {"max_split_size_mb:20x",
       "max_split_size_mb: expected MiB, at least large_segment_size_mb, found '20x'"},
      {"max_split_size_mb:21,large_segment_size_mb:30",
       "max_split_size_mb: expected at least large_segment_size_mb, which is 30, found '21'"},
      {"large_segment_size_mb:10", "large_segment_size_mb: expected MiB, more than 10, found '10'"},
      {"expandable_segments:True,large_segment_size_mb:11",
       "large_segment_size_mb: expected an even number with expandable_segments: the driver maps "
       "pages of 2 MiB"},
      {"expandable_segments:true", "expandable_segments: expected True or False, found 'true'"},
      {"roundup_power2_divisions:3",
       "roundup_power2_divisions: expected a power of two, or [SIZE:DIVISIONS,...], found '3'"},
      {"roundup_power2_divisions:[64:8", "roundup_power2_divisions: expected ',', found the end"},
      {"roundup_power2_divisions:[3:8]",
       "roundup_power2_divisions: expected a size in MiB that is a power of two, or '>', found "
       "'3'"},
      {"garbage_collection_threshold:1",
       "garbage_collection_threshold: expected a number between 0 and 1, found '1'"},
      {"per_process_memory_fraction:1.5",
       "per_process_memory_fraction: expected a number from 0 to 1, found '1.5'"},
      {"per_process_memory_fraction:nan",
       "per_process_memory_fraction: expected a number from 0 to 1, found 'nan'"},
      {"backend:cudaMallocAsync", "backend: cudaMallocAsync is not simulated: expected native"},
      {"pinned_use_background_threads:True",
       "pinned_use_background_threads: True is not simulated: expected False"},
      {"expandable_segments:False max_split_size_mb:20",
       "expandable_segments: expected True or False, found 'Falsemax_split_size_mb'"},
      {"max_split_size_mb:20:30", "max_split_size_mb: expected ',', found ':'"},
      {",", ",: expected ':', found the end"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(refusal(each.text), std::string("--alloc-conf: ") + each.refusal);
  }
  EXPECT_TRUE(refusal("max_split:20")
                  .starts_with("--alloc-conf: max_split: expected an option of "
                               "PYTORCH_CUDA_ALLOC_CONF: expandable_segments,"));
}

}  // namespace
}  // namespace ferry
