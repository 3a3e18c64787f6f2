// One JSON text read front to back, without building a tree: for logs of millions of lines, where
// formats/json_fields.h is too slow. It is as strict: a text that is not JSON (RFC 8259), or not
// UTF-8, is refused, saying what was expected and where.
//
// A value is scanned once. An array or an object is returned as its text, already checked, for
// callers to scan further. Texts refer to the input or, where escapes had to be decoded, to the
// scan's own buffer: both until the next reset().
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ferry {

// what(): "expected a ',' or '}' at column 17". Columns are bytes, from 1.
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct JsonValue {
  enum class Kind : std::uint8_t {
    kAbsent,
    kText,
    kInteger,  // with |value| < 2^64
    kNumber,   // any other number
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
  std::string_view string();
  std::string_view decode(const char* from);
  void utf8();
  void escape(std::string& into);
  std::uint32_t hex4();
  JsonValue number();
  JsonValue word(std::string_view text, JsonValue::Kind kind);
  JsonValue nested(char open);

  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool first_ = false;  // open() has seen no element yet
  int depth_ = 0;
  std::string decoded_;  // can hold all of the text, so it never moves while it grows
};

}  // namespace ferry
