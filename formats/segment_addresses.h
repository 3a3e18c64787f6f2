// Models the addresses at which cudaMalloc puts segments.
//
// If several free blocks have the same size, PyTorch's allocator takes the one with the lowest
// address. So the order of segments matters: if an optimizer's state goes into another one of a
// layer's equal blocks, another segment cannot be used as a whole. That changes the reserved memory
// of Llama-3-8B by 4 to 8 %.
//
// NVIDIA's driver takes pieces of 32 MiB from the top down. A segment that fits into the rest of a
// piece goes to the beginning of this rest. This was observed in PyTorch's lists of segments: a
// memory snapshot of an H100 (seven segments, in the order in which they were made) and a listing
// of an RTX 3090 (CUDA 11.8, four segments). What a driver does with freed addresses is not known;
// here they are not used again. kUp models a runtime that counts upwards, as runtimes without a GPU
// may.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace ferry {

enum class AddressOrder { kDown, kUp };

class SegmentAddresses {
 public:
  // Uses the addresses from `begin` to before `end`; both are multiples of kPiece.
  SegmentAddresses(std::uint64_t begin, std::uint64_t end, AddressOrder order)
      : begin_(begin), end_(end), order_(order) {}

  // Takes `bytes` addresses (at least one) and returns the first; empty if not enough are left. The
  // result is a multiple of 512 if all sizes so far are.
  std::optional<std::uint64_t> take(std::uint64_t bytes) {
    if (order_ == AddressOrder::kUp) {
      if (bytes > left()) return std::nullopt;
      begin_ += bytes;
      return begin_ - bytes;
    }
    if (const auto rest = std::find_if(rests_.begin(), rests_.end(),
                                       [&](const Rest& each) { return each.bytes >= bytes; });
        rest != rests_.end()) {
      return from(rest, bytes);
    }
    if (bytes > left()) return std::nullopt;
    const std::uint64_t whole = (bytes + kPiece - 1) / kPiece * kPiece;
    end_ -= whole;
    if (whole > bytes) rests_.push_back({end_ + bytes, whole - bytes});
    return end_;
  }

  std::uint64_t left() const { return end_ - begin_; }  // does not count the rests of pieces

  static constexpr std::uint64_t kPiece = std::uint64_t{32} << 20;

 private:
  struct Rest {
    std::uint64_t begin, bytes;
  };

  std::uint64_t from(std::vector<Rest>::iterator rest, std::uint64_t bytes) {
    const std::uint64_t begin = rest->begin;
    rest->begin += bytes;
    rest->bytes -= bytes;
    if (rest->bytes == 0) rests_.erase(rest);
    return begin;
  }

  std::uint64_t begin_, end_;
  AddressOrder order_;
  std::vector<Rest> rests_;  // from the top down
};

}  // namespace ferry
