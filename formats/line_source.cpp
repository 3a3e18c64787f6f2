#include "formats/line_source.h"

#include <algorithm>
#include <cstring>

#include "formats/error.h"
#include "formats/limits.h"

namespace ferry {

bool LineSource::next(std::string_view& line) {
  std::size_t searched = 0;
  for (;;) {
    const char* from = buffer_.data() + begin_;
    const std::size_t left = end_ - begin_;
    const void* found =
        left > searched ? std::memchr(from + searched, '\n', left - searched) : nullptr;
    if (found != nullptr) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - from);
      line = {from, length};
      begin_ += length + 1;
      number_++;
      return true;
    }
    searched = left;
    if (fill()) continue;
    if (left == 0) return false;
    line = {buffer_.data() + begin_, left};  // the last line needs no '\n'
    begin_ = end_;
    number_++;
    return true;
  }
}

// Moves the bytes that are left to the front of the buffer, and reads more after them.
bool LineSource::fill() {
  constexpr std::size_t kChunk = std::size_t{1} << 18;
  if (end_ - begin_ > limits::kLineBytes) {
    throw InputError(file_, number_ + 1,
                     "expected lines of at most " + std::to_string(limits::kLineBytes) + " bytes");
  }
  if (begin_ != 0) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() < end_ + kChunk) buffer_.resize(std::max(buffer_.size() * 2, end_ + kChunk));
  in_->read(buffer_.data() + end_, static_cast<std::streamsize>(buffer_.size() - end_));
  if (in_->bad()) throw InputError(file_, number_ + 1, "cannot read further");
  const std::streamsize read = in_->gcount();
  in_->clear();  // a short read is not the end: a pipe returns what it has
  end_ += static_cast<std::size_t>(read);
  return read > 0;
}

}  // namespace ferry
