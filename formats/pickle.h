// Reads a pickle (Python's serialised objects) of plain data, and executes nothing.
//
// A pickle is a program for a small machine, and some of its instructions import and call what they
// name. This reader makes numbers, texts, lists, tuples and dictionaries. In the place of what
// would be imported or called stands an object of that name, which nobody made: who needs its value
// refuses it, and who does not never notices. Source: Lib/pickletools.py of CPython 3.11, protocols
// 2 to 5.
//
// Values are numbered and owned by the document; several places may share one. A pickle can make a
// list that is in itself: who walks a document goes where a format says, and no deeper.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::pickle {

enum class Kind : std::uint8_t {
  kNone,
  kBool,
  kInteger,
  kFloat,
  kText,
  kList,
  kTuple,
  kDict,
  kBig,     // an integer of more than 64 bits, whose value is not kept
  kBytes,   // of Python's bytes and bytearray
  kObject,  // anything else
};

std::string_view name(Kind kind);  // "a list"

enum class Id : std::uint32_t {};

struct Value {
  Kind kind = Kind::kNone;
  std::int64_t integer = 0;  // or 0 and 1, of a bool
  double real = 0;
  std::string_view text;  // of the bytes that were read, which must live as long
  std::vector<Id> items;  // of a dictionary: a key, its value, the next key, …; of an object: the
                          // texts of its module and its name, if it has one
};

class Document {
 public:
  const Value& operator[](Id id) const { return values_[static_cast<std::size_t>(id)]; }
  const Value& root() const { return (*this)[root_]; }
  // "a list", "an object of posix.system"
  std::string in_words(const Value& value) const;
  // The value of a dictionary's key; null: it has none. Of equal keys the last counts.
  const Value* find(const Value& dict, std::string_view key) const;

 private:
  friend class Reader;
  std::vector<Value> values_;
  Id root_{};
};

// Throws InputError: the file, and the byte at which it is no such pickle. Values, their nesting
// and their remembered ones have limits.
Document parse(std::string_view bytes, const std::string& file);

}  // namespace ferry::pickle
