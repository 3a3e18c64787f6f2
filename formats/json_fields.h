// Reads JSON with errors that name file and line. parse_json makes a tree (json_parse.cpp), and
// Fields reads the keys of an object. Most readers of Ferry's JSON files use both. json_text,
// json_layout and json_list write parts of such files.
//
// A key whose value a reader takes must have the right type and range, and must not be there twice;
// otherwise it is an InputError. It must also be there, except for find, flag, integer_or, the
// functions that end in _or_none, and the strides and offset of a layout. find and at return the
// value as it is. Keys that no reader asks for are ignored: those of later versions of Ferry, and
// of other programs.
//
// Only .cpp files include this: it brings nlohmann-json with it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/error.h"
#include "formats/program.h"

namespace ferry {

using Json = nlohmann::ordered_json;

// The line on which each value begins. The path "" is the whole text, "entries/3" a member of a
// member.
struct JsonLines {
  std::map<std::string, std::uint64_t, std::less<>> lines;  // values at most two levels deep
  std::uint64_t line_of(std::string_view path) const;       // else the line of the nearest ancestor
};

// Parses a JSON text that begins on `line` of `file`. A syntax error throws InputError with its
// line. `lines`, if not null, receives the line of each value. A number beyond 64 bits becomes a
// floating point number or infinity. A key that occurs twice gets a value that Fields rejects.
Json parse_json(std::string_view text, const std::string& file, std::uint64_t line,
                JsonLines* lines = nullptr);

class Fields {
 public:
  static constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  static constexpr std::uint32_t kMaxNumber = kNoSlot - 1;

  // `object`, `file` and `lines` must outlive this. Throws InputError if the value is not an
  // object. With `lines`, where the object is at `path`, errors have the line of the wrong key.
  Fields(const Json& object, const std::string& file, std::uint64_t line,
         const JsonLines* lines = nullptr, std::string path = "");

  bool has(std::string_view key) const;
  const Json* find(std::string_view key) const;  // null if it is missing
  const Json& at(std::string_view key) const;    // throws if it is missing
  Fields object(std::string_view key) const;

  std::string text(std::string_view key);
  bool flag(std::string_view key, bool otherwise);
  std::int64_t integer(std::string_view key, std::int64_t least = 0, std::int64_t most = kMax);
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t most = kMax);
  std::uint32_t number(std::string_view key, std::uint32_t most = kMaxNumber);  // a code, node, …
  std::vector<std::int64_t> integers(std::string_view key);                     // each at least 0
  std::vector<std::uint32_t> numbers(std::string_view key, bool nulls = false);  // null: kNoSlot
  std::vector<std::uint32_t> numbers_or_none(std::string_view key);
  Slot slot(std::string_view key);  // slots are below limits::kSlots
  std::vector<Slot> slots(std::string_view key, bool nulls = false);
  std::vector<Slot> slots_or_none(std::string_view key);
  // Reads "dtype" and "shape", and "strides" and "offset" if they are there. Without them, the
  // tensor is contiguous.
  Layout layout();

  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void expected(std::string_view key, std::string_view what) const;

  const std::string& file() const { return *file_; }
  std::uint64_t line() const { return line_; }

 private:
  std::string path_of(std::string_view key) const;
  std::uint64_t line_of(std::string_view key) const;

  const Json* object_;
  const std::string* file_;
  std::uint64_t line_;
  const JsonLines* lines_;
  std::string path_;
};

std::string json_text(std::string_view text);  // quoted and escaped

// Writes a layout as Fields::layout reads it: `"dtype":"f32","shape":[2,3]`.
std::string json_layout(const Layout& layout);
std::string json_list(const std::vector<std::int64_t>& values);

}  // namespace ferry
