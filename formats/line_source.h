// Reads a stream of text line by line, for files that may be too large to read as a whole (stream
// logs, programs). It needs memory only for the longest line. A line much longer than
// limits::kLineBytes is an InputError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

class LineSource {
 public:
  // `in` must outlive this object; `file` names the input in errors.
  LineSource(std::istream& in, std::string file) : in_(&in), file_(std::move(file)) {}

  // Reads the next line, without its '\n'; returns false after the last one. The line is valid
  // until the next call. Throws InputError if reading fails.
  bool next(std::string_view& line);
  std::uint64_t number() const { return number_; }  // of the last line that was read, from 1
  const std::string& file() const { return file_; }

 private:
  bool fill();

  std::istream* in_;
  std::string file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the bytes of the buffer that next() has not returned yet
  std::uint64_t number_ = 0;
};

}  // namespace ferry
