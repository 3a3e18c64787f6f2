// One JSON text read front to back, without building a tree: all of Ferry's readers stand on it. A
// text that is not JSON (RFC 8259), or not UTF-8, is refused, saying what was expected and
// where.
//
// A value that nobody needs stops nobody: a number has any size, values nest as deep as the text is
// long, and a number may be NaN, inf or Infinity, which Python and PyTorch's profiler write.
//
// A value is scanned once. An array or an object is returned as its text, already checked, for
// callers to scan further. Texts refer to the input or, where escapes had to be decoded, to the
// scan's own buffer: both until the next reset().
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ferry {

// what(): "expected a ',' or '}' at column 17". Columns are bytes of a line, from 1.
struct JsonError : std::runtime_error {
  explicit JsonError(const std::string& what, std::size_t at = 0)
      : std::runtime_error(what), offset(at) {}
  std::size_t offset;  // in the text
};

struct JsonValue {
  enum class Kind : std::uint8_t {
    kAbsent,
    kText,
    kInteger,  // with |value| < 2^64
    kNumber,   // any other number, or NaN or infinite
    kTrue,
    kFalse,
    kNull,
    kArray,
    kObject,
  };
  Kind kind = Kind::kAbsent;
  bool negative = false;
  std::uint64_t magnitude = 0;  // an integer's absolute value
  std::string_view text;        // a text, decoded; any other value, as in the input

  explicit operator bool() const { return kind != Kind::kAbsent; }
};

class JsonScan {
 public:
  explicit JsonScan(std::string_view text = {}) { reset(text); }
  void reset(std::string_view text);
  // Scans a part of the text: an array or object that value() gave.
  void enter(std::string_view part);

  // Enters an array or object, past its opening bracket.
  void open(char bracket);
  // Moves to the next member or element; false at the end, past the closing bracket.
  bool next_key(std::string_view& key);
  bool next_element();
  JsonValue value();
  // The bracket with which the next value begins; 0: it is no array or object.
  char opens();
  std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }
  // Refuses anything but white space that is left.
  void finish();
  bool blank();  // true if only white space is left now

  [[noreturn]] void expected(const std::string& what) const;

 private:
  char peek() const { return at_ < end_ ? *at_ : '\0'; }
  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }
  void take(char c);
  bool separator(char close);
  bool next_member();  // as next_key, up to the key
  JsonValue scalar(bool kept);
  // Checked, and decoded if it is kept.
  std::string_view string(bool kept);
  std::string_view decode(const char* from, bool kept);
  void utf8();
  void escape(bool kept);
  std::uint32_t hex4();
  JsonValue number();
  bool starts(std::string_view word) const;
  JsonValue word(std::string_view text, JsonValue::Kind kind);
  JsonValue nested();

  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool first_ = false;   // open() has seen no element yet
  std::string opened_;   // brackets around what nested() is at
  std::string decoded_;  // can hold all of the text, so it never moves while it grows
};

}  // namespace ferry
