// Where cudaMalloc puts a segment among the addresses of its device.
//
// PyTorch's allocator takes, of free blocks of equal size, the one with the lowest address. So it
// matters which of two segments lies below the other: an optimizer's state that is put into another
// of a layer's equal blocks keeps another segment from being used as a whole, which is 4 to 8 % of
// what Llama-3-8B reserves.
//
// NVIDIA's driver takes pieces of 32 MiB from the top down, and what fits into the rest of a piece
// goes there, at its beginning. That is read off PyTorch's own lists of segments: a memory snapshot
// of an H100 (seven segments, in the order of their making) and a listing of an RTX 3090 (CUDA
// 11.8, four). What a driver does with addresses that were given back is not known: they are not
// used again. kUp is what a process that counts upwards does, as runtimes without a GPU may.
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
  // Those from `begin` to before `end`, multiples of kPiece.
  SegmentAddresses(std::uint64_t begin, std::uint64_t end, AddressOrder order)
      : begin_(begin), end_(end), order_(order) {}

  // The first of so many, at least one; none: there are not so many left. They are multiples of
  // 512 bytes if all that were asked for before are.
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

  std::uint64_t left() const { return end_ - begin_; }  // without the rests of pieces

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
