// Reads a TOML file strictly. A reader takes each key with its type; a wrong type is an error with
// file and line, and finish() rejects keys that no reader took. A key of a table is written
// "link.latency", a key of the first [[skip]] "skip[0].key".
//
// This wrapper keeps toml++ (slow to compile) in one source file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

class TomlFields {
 public:
  // Throws InputError, like all functions below.
  TomlFields(std::string_view text, std::string file);
  static TomlFields open(const std::filesystem::path& path);

  bool has(const std::string& key) const { return values_.contains(key); }
  // The error lists all missing keys together.
  void require(std::initializer_list<const char*> keys) const;
  std::string text(const std::string& key);
  std::string text_or(const std::string& key, std::string otherwise);
  std::int64_t integer_or(const std::string& key, std::int64_t otherwise, std::int64_t least,
                          std::int64_t most);
  std::vector<std::string> texts(const std::string& key);  // a list of strings, not empty
  // Lists that are not empty. Items are returned as texts: digits, and "true" or "false".
  std::vector<std::string> integers(const std::string& key);
  std::vector<std::string> booleans(const std::string& key);
  // A string or an integer, parsed by a function of scenarios/units.h.
  std::int64_t quantity(const std::string& key, std::int64_t (*parse)(std::string_view));

  void finish() const;
  [[noreturn]] void expected(const std::string& key, const std::string& what) const;
  std::uint64_t line_of(const std::string& key) const;  // 0 if the file does not have the key
  const std::string& file() const { return file_; }

 private:
  struct Value {
    enum class Kind : std::uint8_t { kText, kInteger, kTexts, kIntegers, kBooleans, kOther };
    Kind kind = Kind::kOther;
    std::uint32_t line = 0;
    bool taken = false;
    std::string text;                // a string, or the digits of an integer
    std::vector<std::string> texts;  // the items of a list as texts
  };
  struct Loader;

  Value& take(const std::string& key);
  std::vector<std::string> list(const std::string& key, Value::Kind kind, const char* what);

  std::string file_;
  std::map<std::string, Value> values_;
};

}  // namespace ferry
