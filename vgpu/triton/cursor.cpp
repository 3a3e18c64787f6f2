#include "vgpu/triton/cursor.h"

#include <cctype>

#include "formats/error.h"

namespace ferry::vgpu::triton {
namespace {

bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '$' ||
         c == '-' || c == '+';
}

}  // namespace

void Cursor::skip_spaces() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '/' && text_.substr(position_).starts_with("//")) {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      return;
    }
    if (c != ' ' && c != '\t' && c != '\r') return;
    ++position_;
  }
}

bool Cursor::at_end() { return peek() == '\0'; }
bool Cursor::at_line_end() { return peek() == '\n' || peek() == '\0'; }

void Cursor::skip_lines() {
  while (peek() == '\n') {
    ++position_;
    ++line_;
  }
}

char Cursor::peek() {
  skip_spaces();
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool Cursor::at(std::string_view next) {
  skip_spaces();
  return text_.substr(position_).starts_with(next);
}

bool Cursor::accept(std::string_view next) {
  if (!at(next)) return false;
  position_ += next.size();
  return true;
}

void Cursor::expect(std::string_view next) {
  if (!accept(next)) fail("'" + std::string(next) + "'");
}

std::string_view Cursor::word() {
  skip_spaces();
  const std::size_t begin = position_;
  while (position_ < text_.size() && is_in_word(text_[position_]) &&
         !text_.substr(position_).starts_with("->")) {
    ++position_;
  }
  return text_.substr(begin, position_ - begin);
}

std::string_view Cursor::value_name() {
  expect("%");
  const std::size_t begin = position_;
  while (position_ < text_.size() && (is_in_word(text_[position_]) || text_[position_] == '#')) {
    ++position_;
  }
  if (position_ == begin) fail("the name of a value");
  return text_.substr(begin, position_ - begin);
}

std::string Cursor::quoted() {
  expect("\"");
  std::string text;
  for (; position_ < text_.size() && text_[position_] != '\n'; ++position_) {
    if (text_[position_] == '"') {
      ++position_;
      return text;
    }
    if (text_[position_] == '\\' && position_ + 1 < text_.size()) ++position_;
    text += text_[position_];
  }
  fail("'\"' at the end of a text");
}

std::string_view Cursor::inside(char open, char close) {
  const std::size_t begin = position_;
  bool in_text = false;
  for (int depth = 1; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '\n') ++line_;
    if (c == '"' && text_[position_ - 1] != '\\') in_text = !in_text;
    if (in_text) continue;
    const bool is_arrow = c == '>' && text_[position_ - 1] == '-';
    depth += (c == open ? 1 : 0) - (c == close && !is_arrow ? 1 : 0);
    if (depth == 0) return text_.substr(begin, position_++ - begin);
  }
  fail(std::string("'") + close + "'");
}

void Cursor::fail(const std::string& expected) {
  std::size_t end = position_;
  while (end < text_.size() && text_[end] != '\n' && end - position_ < 30) ++end;
  const std::string got(text_.substr(position_, end - position_));
  throw InputError(file_, line_, "expected " + expected + ", got '" + got + "'");
}

}  // namespace ferry::vgpu::triton
