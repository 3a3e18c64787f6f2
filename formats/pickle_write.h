// Writes a pickle of plain data, of protocol 2, for formats/pickle.h and for Python.
//
// Texts that come again are written once. The caller nests: a list is begun, given its values and
// ended; a dictionary's values follow their keys.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ferry::pickle {

class Writer {
 public:
  Writer() { bytes_ = "\x80\x02"; }

  void none() { bytes_ += 'N'; }
  void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void integer(std::int64_t value);
  void real(double value);
  void text(std::string_view value);
  void begin_list() { bytes_ += "]("; }
  void end_list() { bytes_ += 'e'; }
  void begin_dict() { bytes_ += "}("; }
  void end_dict() { bytes_ += 'u'; }
  void begin_tuple() { bytes_ += '('; }
  void end_tuple() { bytes_ += 't'; }

  std::string finish();  // the pickle; once

 private:
  void number(std::uint64_t value, int bytes);

  std::string bytes_;
  std::map<std::string, std::uint32_t, std::less<>> texts_;  // their numbers in the pickle
};

}  // namespace ferry::pickle
