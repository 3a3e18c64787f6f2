// The engine's queues: operations in chunks of words, with 8 bytes for an operation that is like
// the one before.
//
// A queue keeps its front operation whole. Of each other operation it keeps the kind, the value,
// and two differences from the operation before it in the queue: how many operations the host
// submitted and how much time passed in between. If they fit, they take one word:
//
//     63       31 30           15 14           3 2     0
//    |   value    |  later by ns  |  submissions | kind |
//
// What does not fit (after a pause of the host, a very long kernel, a copy between devices) takes
// three words: the index and kind above a mark, the time, the value. So nothing is rounded, and
// nothing takes more than 24 bytes. The last word that is written to a chunk links to the next
// chunk.
//
// Chunks go back to a common store when they are read. So a long run that advances from time to
// time needs memory only for what is queued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ferry::sim {

struct QueuedOp {
  static constexpr int kKindBits = 3;
  std::uint64_t tag;        // the index in submission order, and the kind in the low bits: 0 to 6
  std::int64_t not_before;  // ns
  std::int64_t value;       // its meaning depends on the kind; not negative
};

// 1,080 bytes, or 1,088 with malloc's own. If it were a power of two, queues that fill at one pace
// would compete for the same cache lines.
struct OpChunk {
  static constexpr std::uint32_t kWords = 135;
  std::uint64_t words[kWords];
};

class ChunkStore {
 public:
  std::uint32_t take() {
    if (free_ == kNone) {
      all_.push_back(std::make_unique_for_overwrite<OpChunk>());
      return static_cast<std::uint32_t>(all_.size() - 1);
    }
    return std::exchange(free_, static_cast<std::uint32_t>(words(free_)[0]));
  }
  void give_back(std::uint32_t chunk) { words(chunk)[0] = std::exchange(free_, chunk); }
  std::uint64_t* words(std::uint32_t chunk) { return all_[chunk]->words; }

  std::size_t held_bytes() const {
    return all_.size() * sizeof(OpChunk) + all_.capacity() * sizeof(all_[0]);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::unique_ptr<OpChunk>> all_;
  std::uint32_t free_ = kNone;  // first of a list; a free chunk's first word is the next one
};

// A FIFO of operations, in chunks of a ChunkStore, which must outlive the queue. While the queue is
// not empty, only pop() changes front().
class OpQueue {
 public:
  bool empty() const { return !has_front_; }
  const QueuedOp& front() const { return front_; }

  // Adds the operation behind the others if it fits into one word of the present chunk. Otherwise
  // returns false. The index must be larger than that of the operation before.
  bool try_push(const QueuedOp& op) {
    const std::uint64_t tag = op.tag - (last_tag_ & ~kKindMask);
    const auto later = static_cast<std::uint64_t>(op.not_before - last_not_before_);
    const auto value = static_cast<std::uint64_t>(op.value);
    const bool fits = (tag >> kTagBits | later >> kLaterBits | value >> (64 - kValueShift)) == 0;
    if (!fits || write_ == end_) return false;
    __builtin_prefetch(write_ + kAhead, 1);
    *write_++ = tag | later << kTagBits | value << kValueShift;
    last_tag_ = op.tag;
    last_not_before_ = op.not_before;
    return true;
  }

  void push(ChunkStore& store, const QueuedOp& op) {
    if (!has_front_) {
      front_ = op;
      has_front_ = true;
    } else {
      if (end_ - write_ < kLongWords) grow(store);
      if (try_push(op)) return;
      *write_++ = op.tag << kMarkBits | kMark;
      *write_++ = static_cast<std::uint64_t>(op.not_before);
      *write_++ = static_cast<std::uint64_t>(op.value);
    }
    last_tag_ = op.tag;
    last_not_before_ = op.not_before;
  }

  void pop(ChunkStore& store) {
    if (read_ == write_) {
      has_front_ = false;
      if (read_ != nullptr) give_back(store);
      return;
    }
    std::uint64_t word = *read_++;
    __builtin_prefetch(read_ + kAhead);
    if ((word & kKindMask) == kMark) [[unlikely]] {
      if ((word & kLink) != 0) word = follow(store, word);
      if ((word & kKindMask) == kMark) return read_long(word);
    }
    front_.tag = (front_.tag & ~kKindMask) + (word & kTagMask);
    front_.not_before += static_cast<std::int64_t>(word >> kTagBits & kLaterMask);
    front_.value = static_cast<std::int64_t>(word >> kValueShift);
  }

 private:
  static constexpr std::uint64_t kKindMask = (1u << QueuedOp::kKindBits) - 1;
  static constexpr std::uint64_t kMark = kKindMask;  // the kind of a word that is not an operation
  static constexpr std::uint64_t kLink = kMark + 1;  // a bit: the word links to the next chunk
  static constexpr int kAhead = 16;  // words; the processor itself prefetches for few queues only
  static constexpr int kLongWords = 3;
  static constexpr int kMarkBits = QueuedOp::kKindBits + 1;
  static constexpr int kTagBits = 15;     // up to 4,095 submissions later
  static constexpr int kValueShift = 31;  // up to 65 us later, and a value up to 8.6e9
  static constexpr int kLaterBits = kValueShift - kTagBits;
  static constexpr std::uint64_t kTagMask = (1u << kTagBits) - 1;
  static constexpr std::uint64_t kLaterMask = (1u << kLaterBits) - 1;

  void read_long(std::uint64_t word) {
    front_.tag = word >> kMarkBits;
    front_.not_before = static_cast<std::int64_t>(*read_++);
    front_.value = static_cast<std::int64_t>(*read_++);
  }

  // Continues in another chunk. The last word of a chunk is never used for an operation, so there
  // is always room for the link.
  [[gnu::noinline]] void grow(ChunkStore& store) {
    const std::uint32_t chunk = store.take();
    std::uint64_t* words = store.words(chunk);
    if (write_ == nullptr) {
      read_ = words;
      read_chunk_ = chunk;
    } else {
      *write_ = std::uint64_t{chunk} << kMarkBits | kLink | kMark;
    }
    write_ = words;
    end_ = words + OpChunk::kWords - 1;
  }

  // Returns the first word of the next chunk.
  [[gnu::noinline]] std::uint64_t follow(ChunkStore& store, std::uint64_t link) {
    store.give_back(read_chunk_);
    read_chunk_ = static_cast<std::uint32_t>(link >> kMarkBits);
    read_ = store.words(read_chunk_);
    __builtin_prefetch(read_ + 8);
    return *read_++;
  }

  [[gnu::noinline]] void give_back(ChunkStore& store) {
    store.give_back(read_chunk_);
    read_ = write_ = end_ = nullptr;
  }

  QueuedOp front_{};
  const std::uint64_t* read_ = nullptr;
  std::uint64_t* write_ = nullptr;
  std::uint64_t* end_ = nullptr;  // of the chunk that is written
  std::uint64_t last_tag_ = 0;    // of the last operation pushed
  std::int64_t last_not_before_ = 0;
  std::uint32_t read_chunk_ = 0;
  bool has_front_ = false;
};

}  // namespace ferry::sim
