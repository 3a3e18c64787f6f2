// A position in the text of a kernel: the smallest steps of reading it.
//
// Spaces and comments are skipped before each step. The end of a line is not a space here, because
// it ends an operation; `skip_lines` goes over it. Errors are InputErrors with the name of the
// kernel, the line in its text, and what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::vgpu::triton {

class Cursor {
 public:
  Cursor(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  bool at_end();
  bool at_line_end();  // also true at the end of the text
  void skip_lines();
  std::uint32_t line() const { return line_; }

  char peek();                         // '\n' at the end of a line, '\0' at the end
  bool at(std::string_view next);      // does not move
  bool accept(std::string_view next);  // moves past it if it comes next
  void expect(std::string_view next);
  void skip() { ++position_; }  // one character

  // A run of letters, digits and any of "_.$-+", without "->"; may be empty.
  std::string_view word();
  std::string_view value_name();  // "%x_1" or "%5#1", without the '%'
  std::string quoted();           // the text between two '"'
  // The text up to the bracket that closes the one before the cursor. Moves past that bracket.
  std::string_view inside(char open, char close);

  [[noreturn]] void fail(const std::string& expected);

 private:
  void skip_spaces();

  std::string_view text_;
  std::string file_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace ferry::vgpu::triton
