#include "cli/output.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/printable.h"

namespace ferry::cli {

void print_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    shown += printable(text.substr(0, end));
    if (end < text.size()) shown += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void print_json(const nlohmann::ordered_json& json) {
  using Json = nlohmann::ordered_json;
  const std::string text = json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace ferry::cli
