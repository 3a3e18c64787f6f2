#include "formats/pickle_write.h"

#include <bit>
#include <limits>
#include <utility>

namespace ferry::pickle {

// Little-endian.
void Writer::number(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
}

void Writer::integer(std::int64_t value) {
  if (value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::int32_t>::max()) {
    bytes_ += 'J';
    number(static_cast<std::uint64_t>(value), 4);
  } else {
    bytes_ += "\x8a\x08";
    number(static_cast<std::uint64_t>(value), 8);
  }
}

void Writer::real(double value) {
  bytes_ += 'G';
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 7; i >= 0; --i) bytes_ += static_cast<char>(bits >> (8 * i) & 0xff);
}

std::uint32_t Writer::remember() {
  bytes_ += 'r';
  number(remembered_, 4);
  return remembered_++;
}

void Writer::repeat(std::uint32_t number) {
  bytes_ += 'j';
  this->number(number, 4);
}

void Writer::text(std::string_view value) {
  if (const auto known = texts_.find(value); known != texts_.end()) return repeat(known->second);
  bytes_ += 'X';
  number(value.size(), 4);
  bytes_ += value;
  texts_.emplace(value, remember());
}

std::string Writer::finish() {
  bytes_ += '.';
  return std::move(bytes_);
}

}  // namespace ferry::pickle
