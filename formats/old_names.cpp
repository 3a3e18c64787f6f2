#include "formats/old_names.h"

#include <algorithm>

namespace ferry {
namespace {

constexpr std::string_view kGoes = " now; the old name goes with the next version";

// Renames the value in the comma-separated list that begins at `at`; returns false if it is
// missing.
bool rename_value(std::string& word, std::size_t at, const OldValue& value) {
  while (at <= word.size()) {
    const std::size_t length = std::min(word.find(',', at), word.size()) - at;
    if (word.compare(at, length, value.old) == 0) {
      word.replace(at, length, value.now);
      return true;
    }
    at += length + 1;
  }
  return false;
}

}  // namespace

NewNames with_new_names(std::vector<std::string> words, std::span<const OldName> names,
                        std::span<const OldValue> values) {
  NewNames result{.words = std::move(words), .notes = {}};
  std::string before;
  for (std::string& word : result.words) {
    const std::string option = word.substr(0, word.find('='));
    for (const OldName& name : names) {
      if (name.old != option) continue;
      result.notes.push_back(option + " is called " + std::string(name.now) + std::string(kGoes));
      word.replace(0, option.size(), name.now);
      break;
    }
    for (const OldValue& value : values) {
      const bool behind = option == value.option && word.size() > option.size();
      if (!behind && before != value.option) continue;
      if (!rename_value(word, behind ? option.size() + 1 : 0, value)) continue;
      result.notes.push_back(std::string(value.option) + " " + std::string(value.old) +
                             " is called " + std::string(value.now) + std::string(kGoes));
    }
    before = word;
  }
  return result;
}

}  // namespace ferry
