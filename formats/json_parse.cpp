// Implements parse_json of formats/json_fields.h: builds a tree from what JsonScan reads.
//
// Readers need only a limited depth (a plan's spans are the deepest, with two levels for each of
// kSpanDepth). Deeper values are checked but left out, so that no text can overflow the stack.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <set>
#include <system_error>

#include "formats/json_fields.h"
#include "formats/json_scan.h"
#include "formats/plan.h"

namespace ferry {
namespace {

constexpr std::size_t kDepth = 200;
static_assert(kDepth > 2 * kSpanDepth + 10);

// The members of one object. For a key that occurs twice it stores the line, as a binary value,
// which no JSON text has.
class Members {
 public:
  void add(const std::string& key, Json value, std::uint64_t line) {
    const auto& members = object_.get_ref<const Json::object_t&>();
    const auto same = [&key](const auto& member) { return member.first == key; };
    constexpr std::size_t kFew = 32;
    if (members.size() < kFew) {
      const auto found = std::find_if(members.begin(), members.end(), same);
      if (found != members.end()) return repeat(key, line);
    } else {
      if (keys_.empty()) {
        for (const auto& member : members) keys_.insert(member.first);
      }
      if (!keys_.insert(key).second) return repeat(key, line);
    }
    object_.get_ref<Json::object_t&>().emplace_back(key, std::move(value));
  }
  Json take() { return std::move(object_); }

 private:
  void repeat(const std::string& key, std::uint64_t line) {
    auto& members = object_.get_ref<Json::object_t&>();
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&key](const auto& member) { return member.first == key; });
    if (!found->second.is_binary()) found->second = Json::binary({}, line);
  }

  Json object_ = Json::object();
  std::set<std::string, std::less<>> keys_;  // used if there are many members
};

Json number_of(const JsonValue& value) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 63;
  if (value.kind == JsonValue::Kind::kInteger && !value.negative) return value.magnitude;
  if (value.kind == JsonValue::Kind::kInteger && value.magnitude <= kLeast) {
    return static_cast<std::int64_t>(~value.magnitude + 1);
  }
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  if (std::from_chars(value.text.data(), end, number).ec != std::errc()) {
    return std::numeric_limits<double>::infinity();
  }
  return number;
}

class Builder {
 public:
  Builder(std::string_view text, std::uint64_t line, JsonLines* lines)
      : text_(text), lines_(lines), scan_(text), line_(line) {}

  Json read() {
    Json root = value(0, "");
    scan_.finish();
    return root;
  }

 private:
  Json value(std::size_t depth, const std::string& path) {
    const char open = scan_.opens();
    constexpr std::size_t kNoted = 2;  // levels
    if (lines_ != nullptr && depth > 0 && depth <= kNoted) lines_->lines.emplace(path, line());
    if (open == '\0' || depth == kDepth) return scalar(scan_.value());
    const bool noted = lines_ != nullptr && depth < kNoted;
    const auto inner = [&](std::string_view name) {
      return noted ? path + (path.empty() ? "" : "/") + std::string(name) : path;
    };
    scan_.open(open);
    if (open == '[') {
      Json array = Json::array();
      while (scan_.next_element()) {
        array.push_back(value(depth + 1, inner(noted ? std::to_string(array.size()) : "")));
      }
      return array;
    }
    Members members;
    std::string_view key;
    while (scan_.next_key(key)) {
      const std::string name(key);
      const std::uint64_t at = line();
      members.add(name, value(depth + 1, inner(name)), at);
    }
    return members.take();
  }

  static Json scalar(const JsonValue& value) {
    switch (value.kind) {
      case JsonValue::Kind::kText:
        return std::string(value.text);
      case JsonValue::Kind::kInteger:
      case JsonValue::Kind::kNumber:
        return number_of(value);
      case JsonValue::Kind::kTrue:
      case JsonValue::Kind::kFalse:
        return value.kind == JsonValue::Kind::kTrue;
      default:
        return nullptr;
    }
  }

  std::uint64_t line() {
    const std::size_t at = scan_.offset();
    line_ +=
        static_cast<std::uint64_t>(std::count(text_.data() + counted_, text_.data() + at, '\n'));
    counted_ = at;
    return line_;
  }

  std::string_view text_;
  JsonLines* lines_;
  JsonScan scan_;
  std::uint64_t line_;
  std::size_t counted_ = 0;  // line_ counts the newlines up to this offset
};

}  // namespace

Json parse_json(std::string_view text, const std::string& file, std::uint64_t line,
                JsonLines* lines) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  try {
    return Builder(text, line, lines).read();
  } catch (const JsonError& error) {
    const auto newlines =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(error.offset), '\n');
    throw InputError(file, line + static_cast<std::uint64_t>(newlines),
                     error.offset == text.size()
                         ? "expected whole JSON, but the text ends: is it truncated?"
                         : "expected JSON: " + std::string(error.what()));
  }
}

}  // namespace ferry
