// The values of a kernel while it runs: one Value has the elements of many programs at once.
//
// Its first axis is the program, and the others are the tensor's. Each axis has its full length or
// is 1, which means that all elements along it are equal: the bounds of a loop are one element, an
// offset that is the same in all programs is one row. So work on them is done once. The elements
// are contiguous. Values of different rank meet at their first axes: a scalar of each program meets
// a tensor of each program.
//
// Elements are stored as bool (kI1, one byte), std::int8_t to std::int64_t (also addresses), float
// (also for the small floating-point types) or double.
//
// Most addresses are *ramps*: an element is a number of its program plus a step for each axis. A
// ramp has no buffer until somebody reads its elements; ramps.cpp works on ramps without that.
//
// Buffers are shared and counted, without atomics: a value is used by one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "vgpu/triton/ttir.h"

namespace ferry::vgpu::triton {

inline constexpr int kMostAxes = 20;  // tl.sort has an axis for each power of two

struct Dims {
  int rank = 1;
  std::array<std::int64_t, kMostAxes> at{1};

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= at[static_cast<std::size_t>(i)];
    return count;
  }
  std::int64_t operator[](int axis) const {
    return axis < rank ? at[static_cast<std::size_t>(axis)] : 1;
  }
  void set(int axis, std::int64_t length) { at[static_cast<std::size_t>(axis)] = length; }
  void insert(int axis, std::int64_t length);
  void erase(int axis);
  bool operator==(const Dims& other) const;
};
// The length of each axis is the longer one.
Dims joined(const Dims& a, const Dims& b);
Dims dims_of(std::int64_t programs, const Type& type);

// Keeps freed buffers for the next value of the same size, so that they stay in the cache.
class Pool {
 public:
  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  struct Buffer {
    std::int64_t uses = 0;
    std::size_t size_class = 0;
    std::byte* bytes() { return reinterpret_cast<std::byte*>(this) + kHead; }
  };
  static constexpr std::size_t kHead = 64;  // also the alignment

  Buffer* take(std::size_t bytes);
  void give(Buffer* buffer) { free_[buffer->size_class].push_back(buffer); }

 private:
  std::array<std::vector<Buffer*>, 48> free_;  // by the logarithm of the size
};

struct Ramp {
  std::vector<std::int64_t> bases;              // one for all programs, or one for each
  std::array<std::int64_t, kMostAxes> steps{};  // 0 along the programs and axes of length 1
};

class Value {
 public:
  Value() = default;
  Value(Pool& pool, Elem elem, const Dims& dims);
  // Elements of kI32, kI64 or kPointer.
  Value(Pool& pool, Elem elem, const Dims& dims, Ramp ramp);
  Value(const Value& other);
  Value(Value&& other) noexcept
      : elem_(other.elem_),
        dims_(other.dims_),
        pool_(other.pool_),
        buffer_(std::exchange(other.buffer_, nullptr)),
        ramp_(std::move(other.ramp_)) {}
  Value& operator=(Value other) noexcept;
  ~Value() { release(); }

  bool exists() const { return buffer_ != nullptr || ramp_ != nullptr; }
  const Ramp* ramp() const { return ramp_.get(); }  // null if it is none
  Elem elem() const { return elem_; }
  const Dims& dims() const { return dims_; }
  std::int64_t elements() const { return dims_.elements(); }

  template <class T>
  T* as() {
    if (buffer_ == nullptr) fill();
    return reinterpret_cast<T*>(buffer_->bytes());
  }
  template <class T>
  const T* as() const {
    if (buffer_ == nullptr) fill();
    return reinterpret_cast<const T*>(buffer_->bytes());
  }

  // The same elements under other dimensions, which have as many.
  Value with(const Dims& dims) const;
  // The same bytes as elements of another type, which is stored in as many bytes.
  Value with(Elem elem) const;
  Value with(Elem elem, const Dims& dims) const { return with(elem).with(dims); }

 private:
  void release();
  void fill() const;  // gives a ramp its elements

  Elem elem_ = Elem::kOther;
  Dims dims_;
  Pool* pool_ = nullptr;
  mutable Pool::Buffer* buffer_ = nullptr;
  std::shared_ptr<const Ramp> ramp_;
};

std::size_t stored_bytes(Elem elem);  // of an element in a Value

}  // namespace ferry::vgpu::triton
