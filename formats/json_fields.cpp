#include "formats/json_fields.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "formats/layout.h"
#include "formats/limits.h"

namespace ferry {
namespace {

// Reads the text and counts its lines, so that the parser's callbacks know where they are.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  std::uint64_t* line = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    if (*at == '\n' && line != nullptr) ++*line;
    ++at;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
};

// Follows the parser through the text: refuses repeated keys, and records lines.
class Watcher {
 public:
  Watcher(const std::string& file, const std::uint64_t& line, JsonLines* lines)
      : file_(file), line_(line), lines_(lines) {}

  void event(Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    switch (event) {
      case Event::key:
        add_key(parsed.get<std::string>());
        break;
      case Event::object_start:
      case Event::array_start:
        note();
        open_.push_back({});
        break;
      case Event::object_end:
      case Event::array_end:
        open_.pop_back();
        break;
      case Event::value:
        note();
        break;
    }
  }

 private:
  struct Open {
    std::set<std::string, std::less<>> keys;  // keys of this object
    std::string key;                          // the current key
    std::size_t items = 0;                    // values seen so far
  };

  void add_key(std::string key) {
    Open& object = open_.back();
    if (!object.keys.insert(key).second) {
      throw InputError(file_, line_, "key \"" + key + "\" is there twice");
    }
    object.key = std::move(key);
  }

  void note() {
    if (open_.empty()) return;
    const std::size_t item = open_.back().items++;
    if (lines_ == nullptr || open_.size() > 2) return;
    std::string path;
    for (const Open& open : open_) {
      if (!path.empty()) path += '/';
      const std::size_t index = &open == &open_.back() ? item : open.items - 1;
      path += open.keys.empty() ? std::to_string(index) : open.key;
    }
    lines_->lines.emplace(std::move(path), line_);
  }

  const std::string& file_;
  const std::uint64_t& line_;
  JsonLines* lines_;
  std::vector<Open> open_;
};

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

Json parse_json(std::string_view text, const std::string& file, std::uint64_t line,
                JsonLines* lines) {
  std::uint64_t at = line;
  // The parser takes a byte 0 for the end of the text, and would ignore the rest.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    at += static_cast<std::uint64_t>(std::count(text.begin(), text.begin() + zero, '\n'));
    throw InputError(file, at, "expected JSON, not a byte 0");
  }
  Watcher watcher(file, at, lines);
  const auto callback = [&](int, Json::parse_event_t event, Json& parsed) {
    watcher.event(event, parsed);
    return true;
  };
  try {
    return Json::parse(CountingIterator{text.data(), &at},
                       CountingIterator{text.data() + text.size(), nullptr}, callback);
  } catch (const Json::parse_error& error) {
    const std::string_view what = error.what();
    const bool ended = what.find("unexpected end of input") != std::string_view::npos;
    throw InputError(file, at,
                     ended ? "expected whole JSON, but the text ends: is it truncated?"
                           : "expected JSON: " + std::string(what));
  } catch (const Json::exception& error) {
    throw InputError(file, at, "expected JSON: " + std::string(error.what()));
  }
}

Fields::Fields(const Json& object, const std::string& file, std::uint64_t line)
    : object_(&object), file_(&file), line_(line), taken_(object.size(), false) {
  if (!object.is_object()) fail("expected a JSON object");
}

bool Fields::has(std::string_view key) const {
  for (const auto& item : object_->items()) {
    if (item.key() == key) return true;
  }
  return false;
}

const Json* Fields::find(std::string_view key) {
  std::size_t position = 0;
  for (const auto& item : object_->items()) {
    if (item.key() == key) {
      taken_[position] = true;
      return &item.value();
    }
    ++position;
  }
  return nullptr;
}

const Json& Fields::at(std::string_view key) {
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

void Fields::finish() const {
  std::size_t position = 0;
  for (const auto& item : object_->items()) {
    if (!taken_[position++]) fail("unknown key \"" + item.key() + "\"");
  }
}

void Fields::fail(const std::string& message) const { throw InputError(*file_, line_, message); }

void Fields::expected(std::string_view key, std::string_view what) const {
  fail("expected \"" + std::string(key) + "\": " + std::string(what));
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
