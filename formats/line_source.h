// The lines of a stream of text, one at a time, in memory for the longest of them.
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
  // `in` must outlive it; `file` names the input in errors.
  LineSource(std::istream& in, std::string file) : in_(&in), file_(std::move(file)) {}

  // The next line without its '\n', valid until the next call; false after the last one. Throws
  // InputError if reading fails.
  bool next(std::string_view& line);
  std::uint64_t number() const { return number_; }  // the number of that line, from 1
  const std::string& file() const { return file_; }

 private:
  bool fill();

  std::istream* in_;
  std::string file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the bytes that were read and not yet handed out
  std::uint64_t number_ = 0;
};

}  // namespace ferry
