#include "scenarios/card_meant.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace ferry {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Returns the runs of letters and digits in lower case. In "80GB", the unit is left out.
std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  const auto end = [&] {
    for (const std::string_view unit : {"gib", "gb"}) {
      const std::size_t digits = word.size() < unit.size() ? 0 : word.size() - unit.size();
      const bool is_size = digits > 0 && word.ends_with(unit) && is_digit(word[digits - 1]);
      if (is_size) word.resize(digits);
    }
    if (!word.empty() && word != "gb" && word != "gib") words.insert(word);
    word.clear();
  };
  for (const char c : text) {
    if (is_digit(c) || is_letter(c)) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      end();
    }
  }
  end();
  return words;
}

// Returns the words of a card and the numbers in them, so that "4090" also finds an "RTX4090".
std::set<std::string> words_and_numbers(const CardName& card) {
  std::set<std::string> words = words_of(card.name);
  words.merge(words_of(card.description));
  std::set<std::string> numbers;
  for (const std::string& word : words) {
    for (std::size_t i = 0; i < word.size();) {
      const std::size_t begin = i;
      while (i < word.size() && is_digit(word[i])) ++i;
      if (i > begin) numbers.insert(word.substr(begin, i - begin));
      if (i == begin) ++i;
    }
  }
  words.merge(numbers);
  return words;
}

}  // namespace

std::string card_meant(std::string_view asked, const std::vector<CardName>& cards) {
  constexpr std::size_t kMost = 3;
  std::set<std::string> wanted = words_of(asked);
  std::erase_if(wanted, [](const std::string& word) {
    return std::none_of(word.begin(), word.end(), is_digit);
  });
  if (wanted.empty()) return "";
  std::string text;
  std::size_t count = 0;
  for (const CardName& card : cards) {
    const std::set<std::string> known = words_and_numbers(card);
    if (!std::includes(known.begin(), known.end(), wanted.begin(), wanted.end())) continue;
    text += (count++ == 0 ? "'" : " or '") + card.name + "' (" + card.description + ")";
  }
  return count == 0 || count > kMost ? "" : "did you mean " + text + "?";
}

}  // namespace ferry
