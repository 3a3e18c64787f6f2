// Makes names safe to print. They come from files that anybody may have written, so control
// characters, which a terminal could act on, are shown as \xNN. Other bytes stay, also those that
// are not UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ferry {

inline std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too. In UTF-8 they are 0xc2 and a second byte.
    const bool second = i > 0 && text[i - 1] == '\xc2' && byte >= 0x80 && byte < 0xa0;
    if (second) shown.pop_back();
    if (second) shown += "\\xc2";
    if (byte >= 0x20 && byte != 0x7f && !second) {
      shown.push_back(text[i]);
    } else {
      shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return shown;
}

}  // namespace ferry
