// One JSON text read front to back, without building a tree: for logs of millions of lines, where
// formats/json_fields.h is too slow. As strict as it: what is not JSON (RFC 8259), or not UTF-8, is
// refused with what was expected and where.
//
// A value is scanned once. Of an array or an object its text comes back, checked, to be scanned in
// its turn by those who want what is in it. Texts refer to the input or, where escapes had to be
// decoded, to the scan's own buffer: both until the next reset().
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
    kNumber,   // any other
    kTrue,
    kFalse,
    kNull,
    kArray,
    kObject,
  };
  Kind kind = Kind::kAbsent;
  bool negative = false;
  std::uint64_t magnitude = 0;  // of an integer
  std::string_view text;        // decoded, of a text; as it stands in the input, of the others

  explicit operator bool() const { return kind != Kind::kAbsent; }
};

class JsonScan {
 public:
  explicit JsonScan(std::string_view text = {}) { reset(text); }
  void reset(std::string_view text);
  // Scans a part of the text: an array or object that value() gave.
  void enter(std::string_view part);

  // Into an array or object, past its opening bracket.
  void open(char bracket);
  // To the next member or element; false at the end, past the closing bracket.
  bool next_key(std::string_view& key);
  bool next_element();
  JsonValue value();
  // Nothing but white space is left.
  void finish();
  bool blank();  // so it is now

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
  bool first_ = false;  // no element yet since open()
  int depth_ = 0;
  std::string decoded_;  // with room for all of the text, so that it does not move while it grows
};

}  // namespace ferry
