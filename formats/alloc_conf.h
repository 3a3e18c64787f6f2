// The options of PyTorch's CUDA caching allocator, under its names and in the syntax of
// PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True,max_split_size_mb:128".
//
// Models c10/core/AllocatorConfig.{h,cpp} and c10/cuda/CUDAAllocatorConfig.h of PyTorch 2.11.
// Options are separated by commas, white space is ignored, and the last one of repeated options
// counts. An option that PyTorch rejects is an error here too. So is a value that PyTorch reads
// only in part ("20x") or as a huge number ("-1"), and a setting with which it fails later (an
// expandable segment whose pages are an odd number of MiB). Options that change only the time of a
// call, but no address, are read and ignored. These options are not modelled and are an error:
// backend:cudaMallocAsync, pinned_use_background_threads:True, pinned_reserve_segment_size_mb.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ferry {

// Which free block PyTorch takes if several have the size that it looks for.
enum class EqualBlocks : std::uint8_t {
  kLowestAddress,  // to 2.11
  kOldestBlock,    // 2.12
  kOldestSegment,  // since 2.13; within a segment, the one with the lowest address
};

// Returns the rule of a version of torch ("2.11.0"); that of the newest for any other text.
EqualBlocks equal_blocks_of(std::string_view torch);

// Returns whether a version of torch keeps the workspaces of cuBLAS. Since 2.15 each call takes one
// and gives it back. True for any other text.
bool keeps_workspaces(std::string_view torch);

struct AllocConf {
  bool expandable_segments = false;
  // The size of a segment for a request above 1 MiB and below 10 MiB, and the unit in which an
  // expandable segment of the large pool grows.
  std::int64_t large_segment_bytes = std::int64_t{20} << 20;
  std::optional<std::int64_t> max_split_bytes;  // larger blocks are not split; empty: no limit
  // A request for such a large block may take one that is this much larger; empty: the size of a
  // large segment.
  std::optional<std::int64_t> max_non_split_rounding_bytes;
  // For each size of request, from 1 MiB on: the number of steps between two powers of two to which
  // the request is rounded up. 0 and 1: it is rounded up to 512 bytes, as by default.
  std::array<std::int64_t, 16> roundup_power2_divisions{};
  double garbage_collection_threshold = 0;  // share of the allowed memory; 0: no collection
  double per_process_memory_fraction = 1;   // share of the device's memory; 1: no limit
  // The last three are not options of PyTorch and not in the text. True: segments have increasing
  // addresses; real drivers use decreasing ones (formats/segment_addresses.h).
  bool segments_go_up = false;
  // These depend on the version of PyTorch.
  EqualBlocks equal_blocks = EqualBlocks::kOldestSegment;
  bool keeps_workspaces = true;

  std::int64_t non_split_rounding_bytes() const {
    return max_non_split_rounding_bytes.value_or(large_segment_bytes);
  }
  std::int64_t divisions_for(std::int64_t bytes) const;

  bool operator==(const AllocConf&) const = default;
};

// How the parser treats unknown options and those that do not affect device addresses (for pinned
// memory). kSkipped is for a memory snapshot: a process ran with them, whatever they mean.
enum class OtherOptions : std::uint8_t { kRefused, kSkipped };

// Throws InputError that names `source` ("--alloc-conf"), the option, and what was expected.
AllocConf parse_alloc_conf(std::string_view text, const std::string& source,
                           OtherOptions others = OtherOptions::kRefused);

// Returns a text that parse_alloc_conf reads back, with only the options that differ from the
// defaults; empty if none does.
std::string to_string(const AllocConf& conf);

}  // namespace ferry
