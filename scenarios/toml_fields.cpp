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
      const toml::array* tables = node.as_array();
      if (const toml::table* inner = node.as_table()) {
        load(*inner, name + ".", into);
      } else if (tables && !tables->empty() && tables->is_homogeneous<toml::table>()) {
        for (std::size_t i = 0; i < tables->size(); ++i) {
          load(*(*tables)[i].as_table(), name + "[" + std::to_string(i) + "].", into);
        }
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
      const auto is_list = [&]<class Each>(Each) { return list->is_homogeneous<Each>(); };
      value.kind = is_list(std::string())    ? Value::Kind::kTexts
                   : is_list(std::int64_t()) ? Value::Kind::kIntegers
                   : is_list(bool())         ? Value::Kind::kBooleans
                                             : Value::Kind::kOther;
      for (const toml::node& item : *list) value.texts.push_back(text_of(item));
    }
    return value;
  }

  static std::string text_of(const toml::node& item) {
    if (const auto integer = item.value_exact<std::int64_t>()) return std::to_string(*integer);
    if (const auto boolean = item.value_exact<bool>()) return *boolean ? "true" : "false";
    return item.value_exact<std::string>().value_or("");
  }
};

// A key of n parts ("a.a.a…") makes n nested tables, and toml++ destroys these by recursion.
constexpr std::ptrdiff_t kMostDots = 1000;

TomlFields::TomlFields(std::string_view text, std::string file) : file_(std::move(file)) {
  if (std::count(text.begin(), text.end(), '.') > kMostDots) {
    throw InputError(file_, 0, "expected at most 1000 dots: a key has at most one");
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

void TomlFields::require(std::initializer_list<const char*> keys) const {
  std::string missing;
  for (const char* const key : keys) {
    if (has(key)) continue;
    missing += (missing.empty() ? " \"" : ", \"") + std::string(key) + "\"";
  }
  const bool one = missing.find(',') == std::string::npos;
  if (!missing.empty())
    throw InputError(file_, 0, (one ? "expected a key" : "expected keys") + missing);
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

std::vector<std::string> TomlFields::list(const std::string& key, Value::Kind kind,
                                          const char* what) {
  const Value& value = take(key);
  if (value.kind != kind || value.texts.empty()) expected(key, what);
  return value.texts;
}

std::vector<std::string> TomlFields::texts(const std::string& key) {
  return list(key, Value::Kind::kTexts, "a list of strings");
}

std::vector<std::string> TomlFields::integers(const std::string& key) {
  return list(key, Value::Kind::kIntegers, "a list of integers");
}

std::vector<std::string> TomlFields::booleans(const std::string& key) {
  return list(key, Value::Kind::kBooleans, "a list of true and false");
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

std::uint64_t TomlFields::line_of(const std::string& key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? 0 : at->second.line;
}

void TomlFields::expected(const std::string& key, const std::string& what) const {
  throw InputError(file_, line_of(key), "expected " + key + ": " + what);
}

}  // namespace ferry
