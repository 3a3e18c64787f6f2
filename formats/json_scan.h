// Reads a JSON text from front to back without building a tree. All of Ferry's readers use it. A
// text that is not JSON (RFC 8259) or not UTF-8 throws JsonError, which says what was expected and
// where.
//
// A value that no reader needs cannot cause an error: numbers may have any size, values may be
// nested to any depth, and a number may be NaN, inf or Infinity, which Python and PyTorch's
// profiler write.
//
// Each value is scanned once. An array or object is returned as its text, already checked, for the
// caller to scan further. Texts point into the input or, if escapes were decoded, into the scan's
// own buffer. Both are valid until the next reset().
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ferry {

// what() is, for example, "expected a ',' or '}' at column 17". Columns are bytes, from 1.
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
  std::string_view text;        // a decoded string; any other value as in the input

  explicit operator bool() const { return kind != Kind::kAbsent; }
};

class JsonScan {
 public:
  explicit JsonScan(std::string_view text = {}) { reset(text); }
  void reset(std::string_view text);
  // Scans a part of the text: an array or object that value() returned.
  void enter(std::string_view part);

  // Enters an array or object, past its opening bracket.
  void open(char bracket);
  // Moves to the next member or element; false at the end, past the closing bracket.
  bool next_key(std::string_view& key);
  bool next_element();
  JsonValue value();
  // The bracket with which the next value begins; 0 if it is not an array or object.
  char opens();
  std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }
  // Throws if anything but white space is left.
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
  bool next_member();  // like next_key, but stops before the key
  JsonValue scalar(bool kept);
  // Checks a string. Decodes it only if it is `kept`.
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
  std::string opened_;   // the brackets around the current position of nested()
  std::string decoded_;  // has room for the whole text, so it never moves while it grows
};

}  // namespace ferry
