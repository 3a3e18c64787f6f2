// The options of PyTorch's CUDA caching allocator, under its names and in the syntax of
// PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True,max_split_size_mb:128".
//
// Models c10/core/AllocatorConfig.{h,cpp} and c10/cuda/CUDAAllocatorConfig.h of PyTorch 2.11:
// options are separated by commas, white space means nothing, and where an option is given twice
// the last one counts. What PyTorch refuses is refused. So is what it reads only in part ("20x") or
// takes for a huge number ("-1"), and a setting that it fails with later (an expandable segment
// whose pages are an odd number of MiB). Options that change how long a call takes, but no address,
// are read and mean nothing here. Refused by name, since they are not modelled:
// backend:cudaMallocAsync, pinned_use_background_threads:True, pinned_reserve_segment_size_mb.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ferry {

// Which free block PyTorch takes where several have the size that it looks for.
enum class EqualBlocks : std::uint8_t {
  kLowestAddress,  // to 2.11
  kOldestBlock,    // 2.12
  kOldestSegment,  // since 2.13; within a segment that with the lowest address
};

// By a version of torch ("2.11.0"); of what is no such version, the newest's.
EqualBlocks equal_blocks_of(std::string_view torch);

struct AllocConf {
  bool expandable_segments = false;
  // The segment of a request above 1 MiB and below 10 MiB; the unit in which an expandable segment
  // of the large pool grows.
  std::int64_t large_segment_bytes = std::int64_t{20} << 20;
  std::optional<std::int64_t> max_split_bytes;  // larger blocks are not split; none: all are
  // A request that may not be split takes a block so much larger; none: a large segment's size.
  std::optional<std::int64_t> max_non_split_rounding_bytes;
  // By the request's size, from 1 MiB on, to which part of a power of two it is rounded up. 0 and
  // 1: to 512 bytes, as usual.
  std::array<std::int64_t, 16> roundup_power2_divisions{};
  double garbage_collection_threshold = 0;  // of what is allowed; 0: nothing is collected
  double per_process_memory_fraction = 1;   // of the device's memory; 1: no limit
  // No option of PyTorch's, and not in its text: whether the device puts each segment above the
  // last, in place of below, as drivers do (formats/segment_addresses.h).
  bool segments_go_up = false;
  // No option either: a version of PyTorch has one of them.
  EqualBlocks equal_blocks = EqualBlocks::kOldestSegment;

  std::int64_t non_split_rounding_bytes() const {
    return max_non_split_rounding_bytes.value_or(large_segment_bytes);
  }
  std::int64_t divisions_for(std::int64_t bytes) const;

  bool operator==(const AllocConf&) const = default;
};

// Those that do not say where the device's allocator puts a block: of pinned memory, and those of a
// later PyTorch. Skipped: a process ran under them, whatever they mean (a memory snapshot's).
enum class OtherOptions : std::uint8_t { kRefused, kSkipped };

// Throws InputError with the name `source` ("--alloc-conf"): what it is about and what was
// expected.
AllocConf parse_alloc_conf(std::string_view text, const std::string& source,
                           OtherOptions others = OtherOptions::kRefused);

// What parse_alloc_conf reads back, with the options alone that differ from the usual; "" where all
// are usual.
std::string to_string(const AllocConf& conf);

}  // namespace ferry
