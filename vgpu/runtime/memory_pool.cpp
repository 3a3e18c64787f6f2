#include "vgpu/runtime/memory_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ferry::vgpu {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

void change(MemoryPool::Level& use, std::int64_t by) {
  use.now += static_cast<std::uint64_t>(by);
  use.most = std::max(use.most, use.now);
}

}  // namespace

std::size_t MemoryPool::rounded(std::size_t bytes) {
  return round_up(std::max<std::size_t>(bytes, 1), kAlignment);
}

std::size_t MemoryPool::segment_bytes(std::size_t bytes) {
  return std::max(kLeastSegment, round_up(rounded(bytes), kGranularity));
}

void MemoryPool::add_segment(std::uintptr_t address, std::size_t bytes) {
  segments_.emplace(address, bytes);
  pieces_.emplace(address, Piece{bytes, true, std::nullopt});
  change(reserved_, static_cast<std::int64_t>(bytes));
}

std::vector<std::uintptr_t> MemoryPool::take_free_segments(std::uint64_t kept) {
  std::vector<std::uintptr_t> taken;
  for (auto segment = segments_.begin(); segment != segments_.end() && reserved_.now > kept;) {
    const auto [address, bytes] = *segment;
    const auto begin = pieces_.find(address);
    const auto end = pieces_.lower_bound(address + bytes);
    const bool is_free =
        std::all_of(begin, end, [](const auto& piece) { return piece.second.is_free; });
    if (!is_free) {
      ++segment;
      continue;
    }
    pieces_.erase(begin, end);
    change(reserved_, -static_cast<std::int64_t>(bytes));
    taken.push_back(address);
    segment = segments_.erase(segment);
  }
  return taken;
}

std::optional<std::uintptr_t> MemoryPool::allocate(std::size_t bytes, StreamId stream) {
  const std::size_t wanted = rounded(bytes);
  auto best = pieces_.end();
  for (auto at = pieces_.begin(); at != pieces_.end(); ++at) {
    const Piece& piece = at->second;
    if (!piece.is_free || piece.bytes < wanted) continue;
    if (piece.freed_on.value_or(stream) != stream) continue;
    if (best == pieces_.end() || piece.bytes < best->second.bytes) best = at;
  }
  if (best == pieces_.end()) return std::nullopt;
  const Piece piece = std::exchange(best->second, {wanted, false, std::nullopt});
  if (piece.bytes > wanted) {
    pieces_.emplace(best->first + wanted, Piece{piece.bytes - wanted, true, piece.freed_on});
  }
  change(used_, static_cast<std::int64_t>(wanted));
  return best->first;
}

// Returns whether both pieces are free for the same stream and lie in one segment.
bool MemoryPool::joins(Pieces::const_iterator first, Pieces::const_iterator second) const {
  return second != pieces_.end() && first->second.is_free && second->second.is_free &&
         !segments_.contains(second->first) && first->second.freed_on == second->second.freed_on;
}

std::optional<std::size_t> MemoryPool::free(std::uintptr_t address, StreamId stream) {
  const auto found = pieces_.find(address);
  if (found == pieces_.end() || found->second.is_free) return std::nullopt;
  const std::size_t bytes = found->second.bytes;
  found->second = {bytes, true, stream};
  change(used_, -static_cast<std::int64_t>(bytes));
  join_next(found);
  if (found != pieces_.begin()) join_next(std::prev(found));
  return bytes;
}

void MemoryPool::join_next(Pieces::iterator piece) {
  for (auto next = std::next(piece); joins(piece, next); next = pieces_.erase(next)) {
    piece->second.bytes += next->second.bytes;
  }
}

std::set<StreamId> MemoryPool::give_all_to(StreamId stream) {
  std::set<StreamId> owners;
  for (auto& [address, piece] : pieces_) {
    if (!piece.is_free) continue;
    if (piece.freed_on) owners.insert(*piece.freed_on);
    piece.freed_on = stream;
  }
  owners.erase(stream);
  for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) join_next(piece);
  return owners;
}

}  // namespace ferry::vgpu
