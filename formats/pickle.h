// Reads a pickle (Python's serialised objects) of plain data, and executes nothing. PyTorch's
// memory snapshots are pickles (memory_snapshot.h). They may come from anybody, so Python's own
// reader, which runs code in them, is no choice.
//
// A pickle is a program for a stack machine, and some of its instructions import and call
// functions. This reader makes None, booleans, numbers, texts, bytes, lists, tuples and
// dictionaries. Where Python would import, call or make anything else, it makes a value of kind
// kObject, which has at most a name. A user that needs the real value must reject it; other users
// can ignore it. Source: Lib/pickletools.py of CPython 3.11, protocols 2 to 5.
//
// The document owns all values and numbers them; a value can be shared. A pickle can make a list
// that contains itself, so a user must walk a document only as deep as its format says.
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
  kBig,     // an integer of more than 64 bits; its value is not stored
  kBytes,   // Python's bytes and bytearray
  kObject,  // anything else
};

std::string_view name(Kind kind);  // "a list"

enum class Id : std::uint32_t {};

struct Value {
  Kind kind = Kind::kNone;
  std::int64_t integer = 0;  // for a bool: 0 or 1
  double real = 0;
  std::string_view text;  // points into the bytes that were read, which must outlive it
  std::vector<Id> items;  // for a dictionary: a key, its value, the next key, …; for an object: the
                          // texts of its module and its name, if it has a name
};

class Document {
 public:
  const Value& operator[](Id id) const { return values_[static_cast<std::size_t>(id)]; }
  const Value& root() const { return (*this)[root_]; }
  // Returns "a list" or, for example, "an object of posix.system".
  std::string in_words(const Value& value) const;
  // Returns the value of a dictionary's key; null if it is missing. The last of equal keys counts.
  const Value* find(const Value& dict, std::string_view key) const;

 private:
  friend class Reader;
  std::vector<Value> values_;
  Id root_{};
};

// Throws InputError with the file and the position of the byte where it is not such a pickle. The
// number of values, of memo entries and of nested levels is limited.
Document parse(std::string_view bytes, const std::string& file);

}  // namespace ferry::pickle
