#include "vgpu/triton/types.h"

#include <array>
#include <string_view>
#include <utility>

namespace ferry::vgpu::triton {
namespace {

constexpr std::array<std::pair<std::string_view, Elem>, 13> kNames = {{{"i1", Elem::kI1},
                                                                       {"i8", Elem::kI8},
                                                                       {"i16", Elem::kI16},
                                                                       {"i32", Elem::kI32},
                                                                       {"i64", Elem::kI64},
                                                                       {"index", Elem::kI64},
                                                                       {"f8E4M3FN", Elem::kF8E4M3},
                                                                       {"f8E5M2", Elem::kF8E5M2},
                                                                       {"f16", Elem::kF16},
                                                                       {"bf16", Elem::kBF16},
                                                                       {"f32", Elem::kF32},
                                                                       {"f64", Elem::kF64},
                                                                       {"none", Elem::kOther}}};

Elem named(std::string_view name) {
  for (const auto& [known, elem] : kNames) {
    if (known == name) return elem;
  }
  return Elem::kOther;
}

std::int64_t number(std::string_view digits) {
  std::int64_t value = 0;
  for (const char c : digits) value = 10 * value + (c - '0');
  return value;
}

// Takes the dimensions off the front of "16x32xf16" and returns the rest.
std::string_view take_shape(std::string_view text, std::vector<std::int64_t>& shape) {
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    const std::size_t end = text.find_first_not_of("0123456789");
    if (end == std::string_view::npos || text[end] != 'x') break;
    shape.push_back(number(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  return text;
}

void set_elem(Type& type, Cursor& cursor, std::string_view name) {
  if (name.empty() && cursor.accept("!tt.ptr<")) {
    const std::string_view inside = cursor.inside('<', '>');
    type.elem = Elem::kPointer;
    type.pointee = named(inside.substr(0, inside.find(',')));
    if (type.pointee == Elem::kOther) type.other = "a pointer to " + std::string(inside);
    return;
  }
  if (name.empty() && cursor.accept("!")) {
    type.other = std::string(cursor.word());
    if (cursor.accept("<")) static_cast<void>(cursor.inside('<', '>'));
    return;
  }
  type.elem = named(name);
  if (type.elem == Elem::kOther) type.other = std::string(name);
}

}  // namespace

Type read_type(Cursor& cursor) {
  Type type;
  if (cursor.accept("tensor<")) {
    set_elem(type, cursor, take_shape(cursor.word(), type.shape));
    if (cursor.accept(",")) {
      static_cast<void>(cursor.inside('<', '>'));  // a layout
    } else {
      cursor.expect(">");
    }
    return type;
  }
  const std::string_view word = cursor.word();
  if (word.empty() && cursor.peek() != '!') cursor.fail("a type");
  set_elem(type, cursor, word);
  return type;
}

std::vector<Type> read_types(Cursor& cursor) {
  std::vector<Type> types;
  if (!cursor.accept("(")) return {read_type(cursor)};
  while (!cursor.accept(")")) {
    types.push_back(read_type(cursor));
    cursor.accept(",");
  }
  return types;
}

}  // namespace ferry::vgpu::triton
