#include "formats/json_fields.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "formats/layout.h"
#include "formats/limits.h"

namespace ferry {
namespace {

std::optional<std::int64_t> as_integer(const Json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > Fields::kMax) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) return std::nullopt;
  return number;
}

constexpr std::int64_t kMaxNumber = Fields::kMaxNumber;
const std::string kSlotText = "slots below " + std::to_string(limits::kSlots);

}  // namespace

std::uint64_t JsonLines::line_of(std::string_view path) const {
  for (;;) {
    if (const auto known = lines.find(path); known != lines.end()) return known->second;
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return 1;
    path = path.substr(0, slash);
  }
}

Fields::Fields(const Json& object, const std::string& file, std::uint64_t line,
               const JsonLines* lines, std::string path)
    : object_(&object), file_(&file), line_(line), lines_(lines), path_(std::move(path)) {
  if (!object.is_object()) fail("expected a JSON object");
}

std::string Fields::path_of(std::string_view key) const {
  return path_ + (path_.empty() ? "" : "/") + std::string(key);
}

std::uint64_t Fields::line_of(std::string_view key) const {
  return lines_ != nullptr && find(key) != nullptr ? lines_->line_of(path_of(key)) : line_;
}

Fields Fields::object(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_object()) expected(key, "an object");
  return {value, *file_, line_of(key), lines_, path_of(key)};
}

bool Fields::has(std::string_view key) const {
  for (const auto& item : object_->items()) {
    if (item.key() == key) return true;
  }
  return false;
}

const Json* Fields::find(std::string_view key) const {
  for (const auto& item : object_->items()) {
    if (item.key() != key) continue;
    if (item.value().is_binary()) {
      throw InputError(*file_, item.value().get_binary().subtype(),
                       "key \"" + std::string(key) + "\" is there twice");
    }
    return &item.value();
  }
  return nullptr;
}

const Json& Fields::at(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) fail("expected a key \"" + std::string(key) + "\"");
  return *value;
}

std::string Fields::text(std::string_view key) {
  const Json& value = at(key);
  if (!value.is_string()) expected(key, "a string");
  auto text = value.get<std::string>();
  if (text.size() > limits::kNameBytes) {
    expected(key, "at most " + std::to_string(limits::kNameBytes) + " bytes");
  }
  return text;
}

bool Fields::flag(std::string_view key, bool otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) expected(key, "true or false");
  return value->get<bool>();
}

std::int64_t Fields::integer(std::string_view key, std::int64_t least, std::int64_t most) {
  const auto number = as_integer(at(key), least, most);
  if (!number) {
    expected(key, "an integer from " + std::to_string(least) +
                      (most == kMax ? "" : " to " + std::to_string(most)));
  }
  return *number;
}

std::int64_t Fields::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t most) {
  return has(key) ? integer(key, 0, most) : otherwise;
}

std::uint32_t Fields::number(std::string_view key, std::uint32_t most) {
  return static_cast<std::uint32_t>(integer(key, 0, most));
}

std::vector<std::int64_t> Fields::integers(std::string_view key) {
  const Json& list = at(key);
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < (list.is_array() ? list.size() : 0); ++i) {
    if (const auto number = as_integer(list[i], 0, kMax)) result.push_back(*number);
  }
  if (!list.is_array() || result.size() != list.size()) expected(key, "a list of integers from 0");
  return result;
}

std::vector<std::uint32_t> Fields::slots(std::string_view key, bool nulls) {
  std::vector<std::uint32_t> found = numbers(key, nulls);
  for (const Slot slot : found) {
    if (slot >= limits::kSlots && slot != kNoSlot) expected(key, kSlotText);
  }
  return found;
}

std::vector<std::uint32_t> Fields::slots_or_none(std::string_view key) {
  return has(key) ? slots(key) : std::vector<std::uint32_t>{};
}

Slot Fields::slot(std::string_view key) { return number(key, limits::kSlots - 1); }

std::vector<std::uint32_t> Fields::numbers(std::string_view key, bool nulls) {
  const Json& list = at(key);
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < (list.is_array() ? list.size() : 0); ++i) {
    if (nulls && list[i].is_null()) {
      result.push_back(kNoSlot);
    } else if (const auto number = as_integer(list[i], 0, kMaxNumber)) {
      result.push_back(static_cast<std::uint32_t>(*number));
    }
  }
  if (!list.is_array() || result.size() != list.size()) {
    expected(key, nulls ? "a list of numbers from 0, or null" : "a list of numbers from 0");
  }
  return result;
}

std::vector<std::uint32_t> Fields::numbers_or_none(std::string_view key) {
  return has(key) ? numbers(key) : std::vector<std::uint32_t>{};
}

Layout Fields::layout() {
  const std::optional<DType> dtype = parse_dtype(text("dtype"));
  if (!dtype) expected("dtype", "one of f64 f32 bf16 f16 f8 i64 i32 i16 i8 u8 bool");
  Layout layout{.dtype = *dtype, .shape = integers("shape"), .strides = {}, .offset = 0};
  try {
    layout.strides = has("strides") ? integers("strides") : contiguous_strides(layout.shape);
    layout.offset = integer_or("offset", 0);
    check_storage(layout);
  } catch (const LayoutError& error) {
    expected("shape", "sizes, strides and offset of a tensor: " + std::string(error.what()));
  }
  return layout;
}

void Fields::fail(const std::string& message) const { throw InputError(*file_, line_, message); }

void Fields::expected(std::string_view key, std::string_view what) const {
  throw InputError(*file_, line_of(key),
                   "expected \"" + std::string(key) + "\": " + std::string(what));
}

std::string json_text(std::string_view text) { return Json(std::string(text)).dump(); }

std::string json_list(const std::vector<std::int64_t>& values) {
  std::string text = "[";
  for (const std::int64_t value : values) {
    if (text.size() > 1) text += ',';
    text += std::to_string(value);
  }
  return text + "]";
}

std::string json_layout(const Layout& layout) {
  std::string text =
      "\"dtype\":" + json_text(name(layout.dtype)) + ",\"shape\":" + json_list(layout.shape);
  if (layout.strides != contiguous_strides(layout.shape)) {
    text += ",\"strides\":" + json_list(layout.strides);
  }
  if (layout.offset != 0) text += ",\"offset\":" + std::to_string(layout.offset);
  return text;
}

}  // namespace ferry
