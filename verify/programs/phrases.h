// Joins phrases on one line, for the texts of trials: "linear, 256 elements, input held".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::verify {

// Returns "1 layer" or "3 layers".
inline std::string counted(std::int64_t count, std::string_view one) {
  std::string text = std::to_string(count);
  text.append(" ").append(one);
  return count == 1 ? text : text + "s";
}

class Phrases {
 public:
  Phrases& add(std::string_view phrase) {
    if (phrase.empty()) return *this;
    if (!text_.empty()) text_.append(", ");
    text_.append(phrase);
    return *this;
  }
  Phrases& add_if(bool said, std::string_view phrase) { return said ? add(phrase) : *this; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace ferry::verify
