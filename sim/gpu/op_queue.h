// The engine's storage: queued operations in chunks, and the signals that records leave behind.
//
// An operation takes 24 bytes while it is queued and none once it is over: chunks go back to a
// common store, so a long run that advances now and then needs memory for what is queued only.
//
// A signal takes 16 bytes, from its record until its last user is gone. Users are whoever asked for
// it (until release), its record, and every wait that is still queued; so a released signal's
// number is reused only when nothing can refer to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ferry::sim {

struct QueuedOp {
  std::uint64_t tag;        // the index in submission order, and the kind in the low 3 bits
  std::int64_t not_before;  // ns
  std::int64_t value;       // ns of a kernel, bytes of a copy, signal of a record or wait
};

struct OpChunk {
  static constexpr std::uint32_t kOps = 42;  // with the link 1,016 bytes: a small malloc size
  QueuedOp ops[kOps];
  OpChunk* next;
};

class ChunkStore {
 public:
  OpChunk* take() {
    if (free_ == nullptr) {
      all_.push_back(std::make_unique_for_overwrite<OpChunk>());
      free_ = all_.back().get();
      free_->next = nullptr;
    }
    OpChunk* chunk = free_;
    free_ = chunk->next;
    chunk->next = nullptr;
    return chunk;
  }

  void give_back(OpChunk* chunk) {
    chunk->next = free_;
    free_ = chunk;
  }

  std::size_t held_bytes() const {
    return all_.size() * sizeof(OpChunk) + all_.capacity() * sizeof(all_[0]);
  }

 private:
  std::vector<std::unique_ptr<OpChunk>> all_;
  OpChunk* free_ = nullptr;
};

// A FIFO of operations; the store outlives it. The address of front() holds until pop().
class OpQueue {
 public:
  bool empty() const { return head_ == tail_ && front_ == back_; }
  const QueuedOp& front() const { return head_->ops[front_]; }

  void push(ChunkStore& store, const QueuedOp& op) {
    if (tail_ == nullptr) {
      head_ = tail_ = store.take();
    } else if (back_ == OpChunk::kOps) {
      tail_->next = store.take();
      tail_ = tail_->next;
      back_ = 0;
    }
    tail_->ops[back_++] = op;
  }

  void pop(ChunkStore& store) {
    if (++front_ < OpChunk::kOps && !empty()) return;
    OpChunk* spent = head_;
    const bool last = head_ == tail_;
    head_ = spent->next;
    front_ = 0;
    if (last) {
      tail_ = nullptr;
      back_ = 0;
    }
    store.give_back(spent);
  }

 private:
  OpChunk* head_ = nullptr;
  OpChunk* tail_ = nullptr;
  std::uint32_t front_ = 0;
  std::uint32_t back_ = 0;
};

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

struct SignalState {
  static constexpr std::int64_t kPending = -1;
  std::int64_t time;          // ns; kPending until the record is reached
  std::uint32_t link;         // the last stream that waits; in a free one: the next free signal
  std::uint32_t users : 31;   // the number of users that can still refer to it
  std::uint32_t of_copy : 1;  // the stream's last work before the record is a copy
};

class SignalTable {
 public:
  std::uint32_t make(bool of_copy) {
    std::uint32_t id = free_;
    if (id != kNone) {
      free_ = (*this)[id].link;
    } else {
      id = size_++;
      if (id % kBlock == 0)
        blocks_.push_back(std::make_unique_for_overwrite<SignalState[]>(kBlock));
    }
    (*this)[id] = SignalState{SignalState::kPending, kNone, 2, of_copy};
    return id;
  }

  void drop_user(std::uint32_t id) {
    SignalState& signal = (*this)[id];
    if (--signal.users > 0) return;
    signal.link = free_;
    free_ = id;
  }

  SignalState& operator[](std::uint32_t id) { return blocks_[id / kBlock][id % kBlock]; }
  std::uint32_t size() const { return size_; }

  std::size_t held_bytes() const {
    return blocks_.size() * kBlock * sizeof(SignalState) + blocks_.capacity() * sizeof(blocks_[0]);
  }

 private:
  static constexpr std::uint32_t kBlock = 64;
  std::vector<std::unique_ptr<SignalState[]>> blocks_;
  std::uint32_t size_ = 0;
  std::uint32_t free_ = kNone;
};

}  // namespace ferry::sim
