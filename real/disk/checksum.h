// XXH3 (64 bits) of a sequence of bytes, added in any pieces. It finds flipped bits and torn or
// misplaced blocks; it does not protect against forged data. The disk tier and saved trainings
// (real/train/digest.h) use it. The code is Yann Collet's xxHash from Debian's libxxhash-dev,
// compiled into checksum.cpp.
#pragma once

#include <cstdint>
#include <memory>

namespace ferry::real {

class Checksum {
 public:
  Checksum();
  void add(const void* from, std::int64_t bytes);
  // Returns the sum of everything added so far.
  std::uint64_t value() const;

 private:
  struct State;
  struct Free {
    void operator()(State* state) const noexcept;
  };
  std::unique_ptr<State, Free> state_;
};

}  // namespace ferry::real
