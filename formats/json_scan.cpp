#include "formats/json_scan.h"

#include <cstddef>

namespace ferry {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Decides for numbers of 20 digits or more.
bool fits_64_bits(std::string_view digits) {
  return digits.size() == 20 && digits <= std::string_view("18446744073709551615");
}

void append_utf8(std::string& into, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { into.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

}  // namespace

void JsonScan::reset(std::string_view text) {
  begin_ = at_ = text.data();
  end_ = begin_ + text.size();
  first_ = false;
  decoded_.clear();
}

void JsonScan::enter(std::string_view part) {
  at_ = part.data();
  first_ = false;
}

void JsonScan::expected(const std::string& what) const {
  const std::string_view before(begin_, offset());
  const std::size_t newline = before.rfind('\n');
  const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
  throw JsonError("expected " + what + " at column " + std::to_string(offset() - line + 1),
                  offset());
}

void JsonScan::take(char c) {
  if (peek() != c || at_ == end_) expected(std::string("'") + c + "'");
  ++at_;
}

void JsonScan::open(char bracket) {
  skip_space();
  take(bracket);
  first_ = true;
}

// Moves past a comma, if one must come here. Returns false if it moved past the closing bracket.
bool JsonScan::separator(char close) {
  skip_space();
  if (at_ < end_ && *at_ == close) {
    ++at_;
    first_ = false;
    return false;
  }
  if (!first_) {
    if (peek() != ',' || at_ == end_) expected(std::string("',' or '") + close + "'");
    ++at_;
    skip_space();
  }
  first_ = false;
  return true;
}

bool JsonScan::next_member() {
  if (!separator('}')) return false;
  if (peek() != '"') expected("a key in double quotes");
  return true;
}

bool JsonScan::next_key(std::string_view& key) {
  if (!next_member()) return false;
  key = string(/*kept=*/true);
  skip_space();
  take(':');
  return true;
}

bool JsonScan::next_element() { return separator(']'); }

bool JsonScan::blank() {
  skip_space();
  return at_ == end_;
}

void JsonScan::finish() {
  if (!blank()) expected("the end of the line");
}

char JsonScan::opens() {
  skip_space();
  const char c = peek();
  return c == '{' || c == '[' ? c : '\0';
}

JsonValue JsonScan::value() { return opens() != '\0' ? nested() : scalar(/*kept=*/true); }

JsonValue JsonScan::scalar(bool kept) {
  switch (peek()) {
    case '"': {
      JsonValue value;
      value.kind = JsonValue::Kind::kText;
      value.text = string(kept);
      return value;
    }
    case 't':
      return word("true", JsonValue::Kind::kTrue);
    case 'f':
      return word("false", JsonValue::Kind::kFalse);
    case 'n':
      return starts("nan") ? number() : word("null", JsonValue::Kind::kNull);
    default:
      return number();
  }
}

bool JsonScan::starts(std::string_view word) const {
  return std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word);
}

JsonValue JsonScan::word(std::string_view text, JsonValue::Kind kind) {
  if (!starts(text)) expected("a value");
  JsonValue value;
  value.kind = kind;
  value.text = {at_, text.size()};
  at_ += text.size();
  return value;
}

JsonValue JsonScan::number() {
  JsonValue value;
  const char* from = at_;
  if (peek() == '-') {
    value.negative = true;
    ++at_;
  }
  for (const std::string_view each : {"NaN", "nan", "Infinity", "inf"}) {
    if (!starts(each)) continue;
    at_ += each.size();
    value.kind = JsonValue::Kind::kNumber;
    value.text = {from, static_cast<std::size_t>(at_ - from)};
    return value;
  }
  if (!is_digit(peek())) expected(value.negative ? "a digit" : "a value");
  const char* digits = at_;
  while (is_digit(peek())) {
    value.magnitude = value.magnitude * 10 + static_cast<std::uint64_t>(*at_ - '0');
    ++at_;
  }
  const bool fits =
      at_ - digits < 20 || fits_64_bits({digits, static_cast<std::size_t>(at_ - digits)});
  if (*digits == '0' && at_ - digits > 1) {
    at_ = digits + 1;
    expected("no digit after a leading 0");
  }
  value.kind = fits ? JsonValue::Kind::kInteger : JsonValue::Kind::kNumber;
  const auto more_digits = [&] {
    value.kind = JsonValue::Kind::kNumber;
    if (!is_digit(peek())) expected("a digit");
    while (is_digit(peek())) ++at_;
  };
  if (peek() == '.') {
    ++at_;
    more_digits();
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    more_digits();
  }
  value.text = {from, static_cast<std::size_t>(at_ - from)};
  return value;
}

// Checks the array or object to its end. It does not recurse, because deep values would overflow
// the stack.
JsonValue JsonScan::nested() {
  JsonValue value;
  value.kind = peek() == '{' ? JsonValue::Kind::kObject : JsonValue::Kind::kArray;
  const char* from = at_;
  opened_.assign(1, *at_);
  open(*at_);
  while (!opened_.empty()) {
    const bool more = opened_.back() == '{' ? next_member() : next_element();
    if (!more) {
      opened_.pop_back();
      continue;
    }
    if (opened_.back() == '{') {
      string(/*kept=*/false);
      skip_space();
      take(':');
    }
    if (const char bracket = opens(); bracket != '\0') {
      opened_.push_back(bracket);
      open(bracket);
    } else {
      scalar(/*kept=*/false);
    }
  }
  value.text = {from, static_cast<std::size_t>(at_ - from)};
  return value;
}

std::string_view JsonScan::string(bool kept) {
  const char* from = ++at_;
  for (; at_ < end_; ++at_) {
    const auto c = static_cast<unsigned char>(*at_);
    if (c == '"') {
      const std::string_view text(from, static_cast<std::size_t>(at_ - from));
      ++at_;
      return text;
    }
    if (c == '\\' || c < 0x20 || c >= 0x80) return decode(from, kept);
  }
  expected("'\"'");
}

// The slow path, from the first character that needs decoding.
std::string_view JsonScan::decode(const char* from, bool kept) {
  // A part that is entered was skipped before, so each string is decoded at most once.
  const auto most = static_cast<std::size_t>(end_ - begin_);
  if (kept && decoded_.capacity() < most && decoded_.empty()) decoded_.reserve(most);
  const std::size_t start = decoded_.size();
  if (kept) decoded_.append(from, at_);
  while (at_ < end_ && *at_ != '"') {
    const auto c = static_cast<unsigned char>(*at_);
    if (c < 0x20) expected("no control character");
    if (c == '\\') {
      ++at_;
      escape(kept);
    } else if (c >= 0x80) {
      const char* code = at_;
      utf8();
      if (kept) decoded_.append(code, at_);
    } else {
      if (kept) decoded_.push_back(*at_);
      ++at_;
    }
  }
  take('"');
  return std::string_view(decoded_).substr(start);
}

// Moves past one code point of several bytes, by Unicode's table of well-formed sequences.
void JsonScan::utf8() {
  const auto byte = [&](std::ptrdiff_t i) -> unsigned {
    return at_ + i < end_ ? static_cast<unsigned char>(at_[i]) : 0u;
  };
  const auto next = [&](std::ptrdiff_t i, unsigned least = 0x80, unsigned most = 0xbf) {
    if (byte(i) < least || byte(i) > most) expected("UTF-8");
  };
  const unsigned lead = byte(0);
  if (lead < 0xc2 || lead > 0xf4) expected("UTF-8");
  if (lead < 0xe0) {
    next(1);
    at_ += 2;
  } else if (lead < 0xf0) {
    next(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf);
    next(2);
    at_ += 3;
  } else {
    next(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf);
    next(2);
    next(3);
    at_ += 4;
  }
}

std::uint32_t JsonScan::hex4() {
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = peek();
    const char letter = static_cast<char>(c | 0x20);
    if (!is_digit(c) && !(letter >= 'a' && letter <= 'f')) expected("four hexadecimal digits");
    code = code * 16 + static_cast<std::uint32_t>(is_digit(c) ? c - '0' : letter - 'a' + 10);
  }
  return code;
}

void JsonScan::escape(bool kept) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char c = peek();
  const std::size_t known = at_ < end_ ? kLetters.find(c) : std::string_view::npos;
  if (known == std::string_view::npos && c != 'u') expected("an escape: \" \\ / b f n r t u");
  ++at_;
  if (known != std::string_view::npos) {
    if (kept) decoded_.push_back(kMeanings[known]);
    return;
  }
  std::uint32_t code = hex4();
  if (code >= 0xdc00 && code < 0xe000) expected("no half of a surrogate pair");
  if (code >= 0xd800 && code < 0xdc00) {
    take('\\');
    take('u');
    const std::uint32_t low = hex4();
    if (low < 0xdc00 || low >= 0xe000) expected("the other half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  if (kept) append_utf8(decoded_, code);
}

}  // namespace ferry
