#include "formats/old_names.h"

#include <algorithm>

namespace ferry {

NewNames with_new_names(std::vector<std::string> words, std::span<const OldName> names) {
  NewNames result{.words = std::move(words), .notes = {}};
  for (std::string& word : result.words) {
    const std::string_view option = std::string_view(word).substr(0, word.find('='));
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const OldName& name) { return name.old == option; });
    if (found == names.end()) continue;
    result.notes.push_back(std::string(found->old) + " is called " + std::string(found->now) +
                           " now; the old name goes with the next version");
    word = std::string(found->now) + word.substr(option.size());
  }
  return result;
}

}  // namespace ferry
