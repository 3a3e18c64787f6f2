// The engine's signals. Each record of a stream makes one.
//
// A signal takes 16 bytes, from its record until its last user is gone. Its users are the caller
// who got it (until release), its record, and every queued wait for it. So a released signal's
// number is reused only when nothing can refer to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ferry::sim {

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

struct SignalState {
  static constexpr std::int64_t kPending = -1;
  static constexpr std::uint32_t kUser = 2;

  bool of_copy() const { return (users & 1) != 0; }

  std::int64_t time;    // ns; kPending until the record is reached
  std::uint32_t link;   // the last stream that waits; if free: the next free signal
  std::uint32_t users;  // kUser for each user, and 1 if it is of a copy
};

class SignalTable {
 public:
  // True if make() may be called. Otherwise call add_block() first.
  bool has_room() const { return free_ != kNone || size_ < blocks_.size() * kBlock; }

  std::uint32_t make(bool of_copy) {
    std::uint32_t id = free_;
    if (id != kNone) {
      free_ = (*this)[id].link;
    } else {
      id = size_++;
    }
    (*this)[id] = SignalState{SignalState::kPending, kNone, 2 * SignalState::kUser + of_copy};
    return id;
  }

  void add_block() { blocks_.push_back(std::make_unique_for_overwrite<SignalState[]>(kBlock)); }

  void add_user(std::uint32_t id) { (*this)[id].users += SignalState::kUser; }
  void drop_user(std::uint32_t id) { drop_user((*this)[id], id); }
  void drop_user(SignalState& signal, std::uint32_t id) {
    signal.users -= SignalState::kUser;
    if (signal.users >= SignalState::kUser) return;
    signal.link = free_;
    free_ = id;
  }

  SignalState& operator[](std::uint32_t id) { return blocks_[id / kBlock][id % kBlock]; }
  std::uint32_t size() const { return size_; }

  std::size_t held_bytes() const {
    return blocks_.size() * kBlock * sizeof(SignalState) + blocks_.capacity() * sizeof(blocks_[0]);
  }

 private:
  static constexpr std::uint32_t kBlock = 256;
  std::vector<std::unique_ptr<SignalState[]>> blocks_;
  std::uint32_t size_ = 0;
  std::uint32_t free_ = kNone;
};

}  // namespace ferry::sim
