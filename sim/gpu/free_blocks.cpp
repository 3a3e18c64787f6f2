#include "sim/gpu/free_blocks.h"

#include <iterator>
#include <tuple>
#include <utility>

namespace ferry::sim {

bool FreeBlocks::Key::operator<(const Key& other) const {
  return std::tie(stream, bytes, rank, address) <
         std::tie(other.stream, other.bytes, other.rank, other.address);
}

void FreeBlocks::put(Block* block) {
  block->searches_ = searches_;
  if (spare_.empty()) {
    blocks_.insert(key_of(block));
  } else {
    spare_.value() = key_of(block);
    blocks_.insert(std::move(spare_));
  }
}

void FreeBlocks::remove(Block* block) { spare_ = blocks_.extract(key_of(block)); }

FreeBlocks::Keys::const_iterator FreeBlocks::search(std::int64_t bytes, StreamId stream,
                                                    const AllocConf& conf) const {
  const auto of_stream = [&](Keys::const_iterator at) {
    return at != blocks_.end() && at->stream == stream;
  };
  auto found = blocks_.lower_bound({stream, bytes, 0, 0, nullptr});
  if (!of_stream(found)) return blocks_.end();
  if (found->block->segment().expandable && conf.expandable_segments) {
    const auto can_become = [](const Block* block) {
      const Block* next = block->after_;
      return block->bytes_ + (next != nullptr && !next->mapped_ ? next->bytes_ : 0);
    };
    for (auto next = std::next(found); found->block->segment().expandable && of_stream(next) &&
                                       can_become(next->block) < can_become(found->block);
         ++next) {
      found = next;
    }
  }
  const std::int64_t size = found->block->bytes_;
  if (conf.max_split_bytes && bytes < *conf.max_split_bytes && size >= *conf.max_split_bytes) {
    return blocks_.end();
  }
  if (conf.max_split_bytes && bytes >= *conf.max_split_bytes &&
      size >= bytes + conf.non_split_rounding_bytes()) {
    return blocks_.end();
  }
  return found;
}

const Block* FreeBlocks::find(std::int64_t bytes, StreamId stream, const AllocConf& conf) const {
  const auto found = search(bytes, stream, conf);
  return found == blocks_.end() ? nullptr : found->block;
}

Block* FreeBlocks::take(std::int64_t bytes, StreamId stream, const AllocConf& conf) {
  const auto found = search(bytes, stream, conf);
  if (found == blocks_.end()) return nullptr;
  Block* block = found->block;
  spare_ = blocks_.extract(found);
  return block;
}

Block* FreeBlocks::first_of(StreamId stream, std::int64_t bytes) const {
  const auto found = blocks_.lower_bound({stream, bytes, 0, 0, nullptr});
  return found != blocks_.end() && found->stream == stream ? found->block : nullptr;
}

std::vector<Block*> FreeBlocks::largest_first(StreamId stream, std::int64_t least,
                                              std::int64_t end) const {
  std::vector<Block*> found;
  const auto first = blocks_.lower_bound({stream, least, 0, 0, nullptr});
  for (auto at = blocks_.lower_bound({stream, end, 0, 0, nullptr}); at != first;) {
    found.push_back((--at)->block);
  }
  return found;
}

}  // namespace ferry::sim
