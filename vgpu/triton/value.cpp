#include "vgpu/triton/value.h"

#include <algorithm>
#include <bit>
#include <new>

#include "vgpu/triton/ttir.h"

namespace ferry::vgpu::triton {

void Dims::insert(int axis, std::int64_t length) {
  for (int i = rank; i > axis; --i) set(i, (*this)[i - 1]);
  ++rank;
  set(axis, length);
}

void Dims::erase(int axis) {
  for (int i = axis; i + 1 < rank; ++i) set(i, (*this)[i + 1]);
  --rank;
}

bool Dims::operator==(const Dims& other) const {
  for (int i = 0; i < std::max(rank, other.rank); ++i) {
    if ((*this)[i] != other[i]) return false;
  }
  return true;
}

Dims joined(const Dims& a, const Dims& b) {
  Dims both;
  both.rank = std::max(a.rank, b.rank);
  for (int i = 0; i < both.rank; ++i) both.set(i, std::max(a[i], b[i]));
  return both;
}

Dims dims_of(std::int64_t programs, const Type& type) {
  Dims dims;
  dims.rank = 1 + static_cast<int>(type.shape.size());
  dims.set(0, programs);
  for (int i = 1; i < dims.rank; ++i) dims.set(i, type.shape[static_cast<std::size_t>(i - 1)]);
  return dims;
}

Pool::~Pool() {
  for (const auto& same_size : free_) {
    for (Buffer* const buffer : same_size) {
      ::operator delete (buffer, std::align_val_t{kHead});
    }
  }
}

Pool::Buffer* Pool::take(std::size_t bytes) {
  const auto size_class = static_cast<std::size_t>(std::bit_width(bytes + kHead - 1));
  auto& same_size = free_.at(size_class);
  if (!same_size.empty()) {
    Buffer* const buffer = same_size.back();
    same_size.pop_back();
    return buffer;
  }
  void* const memory = ::operator new (std::size_t{1} << size_class, std::align_val_t{kHead});
  return new (memory) Buffer{.uses = 0, .size_class = size_class};
}

Value::Value(Pool& pool, Elem elem, const Dims& dims)
    : elem_(elem),
      dims_(dims),
      pool_(&pool),
      buffer_(pool.take(static_cast<std::size_t>(dims.elements()) * stored_bytes(elem))) {
  buffer_->uses = 1;
}

Value::Value(Pool& pool, Elem elem, const Dims& dims, Ramp ramp)
    : elem_(elem),
      dims_(dims),
      pool_(&pool),
      ramp_(std::make_shared<const Ramp>(std::move(ramp))) {}

Value::Value(const Value& other)
    : elem_(other.elem_),
      dims_(other.dims_),
      pool_(other.pool_),
      buffer_(other.buffer_),
      ramp_(other.ramp_) {
  if (buffer_ != nullptr) ++buffer_->uses;
}

Value& Value::operator=(Value other) noexcept {
  std::swap(elem_, other.elem_);
  std::swap(dims_, other.dims_);
  std::swap(pool_, other.pool_);
  std::swap(buffer_, other.buffer_);
  std::swap(ramp_, other.ramp_);
  return *this;
}

void Value::release() {
  if (buffer_ != nullptr && --buffer_->uses == 0) pool_->give(buffer_);
  buffer_ = nullptr;
}

namespace {

template <class T>
void fill_ramp(const Ramp& ramp, const Dims& dims, T* into) {
  const std::int64_t programs = dims[0];
  const std::int64_t each = dims.elements() / programs;
  for (std::int64_t p = 0; p < programs; ++p) {
    std::int64_t first = ramp.bases[ramp.bases.size() == 1 ? 0 : static_cast<std::size_t>(p)];
    std::array<std::int64_t, kMostAxes> index{};
    const int last = dims.rank - 1;
    const std::int64_t length = last > 0 ? dims[last] : 1;
    const std::int64_t step = last > 0 ? ramp.steps[static_cast<std::size_t>(last)] : 0;
    for (std::int64_t row = 0; row < each; row += length) {
      for (std::int64_t i = 0; i < length; ++i) {
        into[p * each + row + i] = static_cast<T>(first + step * i);
      }
      for (int axis = last - 1; axis > 0; --axis) {
        const auto k = static_cast<std::size_t>(axis);
        first += ramp.steps[k];
        if (++index[k] < dims[axis]) break;
        first -= ramp.steps[k] * dims[axis];
        index[k] = 0;
      }
    }
  }
}

bool is_wide(Elem elem) { return elem == Elem::kI64 || elem == Elem::kPointer; }

}  // namespace

void Value::fill() const {
  buffer_ = pool_->take(static_cast<std::size_t>(dims_.elements()) * stored_bytes(elem_));
  buffer_->uses = 1;
  std::byte* const bytes = buffer_->bytes();
  if (elem_ == Elem::kI32) return fill_ramp(*ramp_, dims_, reinterpret_cast<std::int32_t*>(bytes));
  fill_ramp(*ramp_, dims_, reinterpret_cast<std::int64_t*>(bytes));
}

Value Value::with(const Dims& dims) const {
  if (buffer_ == nullptr && ramp_ != nullptr) fill();
  Value same = *this;
  same.ramp_ = nullptr;
  same.dims_ = dims;
  return same;
}

Value Value::with(Elem elem) const {
  const bool stays = is_wide(elem) && is_wide(elem_);
  if (!stays && buffer_ == nullptr && ramp_ != nullptr) fill();
  Value same = *this;
  if (!stays) same.ramp_ = nullptr;
  same.elem_ = elem;
  return same;
}

std::size_t stored_bytes(Elem elem) {
  switch (elem) {
    case Elem::kF8E4M3:
    case Elem::kF8E5M2:
    case Elem::kF16:
    case Elem::kBF16:
      return sizeof(float);
    default:
      return static_cast<std::size_t>(bytes_of(elem));
  }
}

}  // namespace ferry::vgpu::triton
