// Writes a pickle of plain data in protocol 2, which formats/pickle.h and Python read. Memory
// snapshots are written with it (memory_snapshot_write.cpp).
//
// A text that is repeated is written once, and so is a value that the caller remembers. The caller
// begins a list, writes its values and ends it. In a dictionary, a value follows its key.
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

  // Remembers the value that was written last; returns its number, with which it can be repeated.
  std::uint32_t remember();
  void repeat(std::uint32_t number);

  std::string finish();  // returns the pickle; call it once

 private:
  void number(std::uint64_t value, int bytes);

  std::string bytes_;
  std::uint32_t remembered_ = 0;                             // values in the memo
  std::map<std::string, std::uint32_t, std::less<>> texts_;  // their numbers
};

}  // namespace ferry::pickle
