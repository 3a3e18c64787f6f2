#include "scenarios/toml_fields.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "formats/error.h"
#include "formats/text_file.h"
#include "scenarios/units.h"

namespace ferry {

// The only user of toml++: flattens a table into values_.
struct TomlFields::Loader {
  static void load(const toml::table& table, const std::string& prefix, TomlFields& into) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      if (const toml::table* inner = node.as_table()) {
        load(*inner, name + ".", into);
      } else {
        into.values_[name] = value(node);
      }
    }
  }

  static Value value(const toml::node& node) {
    Value value;
    value.line = node.source().begin.line;
    if (const auto text = node.value_exact<std::string>()) {
      value.kind = Value::Kind::kText;
      value.text = *text;
    } else if (const auto integer = node.value_exact<std::int64_t>()) {
      value.kind = Value::Kind::kInteger;
      value.text = std::to_string(*integer);
    } else if (const toml::array* list = node.as_array()) {
      value.kind = Value::Kind::kTexts;
      for (const toml::node& item : *list) {
        const auto each = item.value_exact<std::string>();
        if (!each) value.kind = Value::Kind::kOther;
        value.texts.push_back(each.value_or(""));
      }
    }
    return value;
  }
};

// A key of n parts ("a.a.a…") is n tables in each other, which are destroyed by recursion.
constexpr std::ptrdiff_t kMostDots = 1000;

TomlFields::TomlFields(std::string_view text, std::string file) : file_(std::move(file)) {
  if (std::count(text.begin(), text.end(), '.') > kMostDots) {
    throw InputError(file_, 0, "expected at most 1000 dots: keys have one at most");
  }
  try {
    Loader::load(toml::parse(text, std::string_view(file_)), "", *this);
  } catch (const toml::parse_error& error) {
    throw InputError(file_, error.source().begin.line,
                     "expected TOML: " + std::string(error.description()));
  }
}

TomlFields TomlFields::open(const std::filesystem::path& path) {
  return {read_file(path), path.string()};
}

TomlFields::Value& TomlFields::take(const std::string& key) {
  const auto at = values_.find(key);
  if (at == values_.end()) throw InputError(file_, 0, "expected a key \"" + key + "\"");
  at->second.taken = true;
  return at->second;
}

std::string TomlFields::text(const std::string& key) {
  const Value& value = take(key);
  if (value.kind != Value::Kind::kText) expected(key, "a string");
  return value.text;
}

std::string TomlFields::text_or(const std::string& key, std::string otherwise) {
  return has(key) ? text(key) : std::move(otherwise);
}

std::int64_t TomlFields::integer_or(const std::string& key, std::int64_t otherwise,
                                    std::int64_t least, std::int64_t most) {
  if (!has(key)) return otherwise;
  const Value& value = take(key);
  const bool is_integer = value.kind == Value::Kind::kInteger;
  const std::int64_t number = is_integer ? std::stoll(value.text) : 0;
  if (!is_integer || number < least || number > most) {
    expected(key, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

std::vector<std::string> TomlFields::texts(const std::string& key) {
  const Value& value = take(key);
  if (value.kind != Value::Kind::kTexts || value.texts.empty()) {
    expected(key, "a list of strings");
  }
  return value.texts;
}

std::int64_t TomlFields::quantity(const std::string& key, std::int64_t (*parse)(std::string_view)) {
  const Value& value = take(key);
  const bool is_scalar = value.kind == Value::Kind::kText || value.kind == Value::Kind::kInteger;
  try {
    return parse(is_scalar ? value.text : "");
  } catch (const UnitError& error) {
    throw InputError(file_, value.line, key + ": " + error.what());
  }
}

void TomlFields::finish() const {
  const std::pair<const std::string, Value>* first = nullptr;  // first in the file's order
  for (const auto& item : values_) {
    if (!item.second.taken && (first == nullptr || item.second.line < first->second.line)) {
      first = &item;
    }
  }
  if (first != nullptr) {
    throw InputError(file_, first->second.line, "unknown key \"" + first->first + "\"");
  }
}

void TomlFields::expected(const std::string& key, const std::string& what) const {
  const auto at = values_.find(key);
  throw InputError(file_, at == values_.end() ? 0 : at->second.line,
                   "expected " + key + ": " + what);
}

}  // namespace ferry
