#include "cli/page/page.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/page/page_template.h"

namespace ferry::cli {

std::string escaped_html(std::string_view text) {
  std::string html;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += letter;
    }
  }
  return html;
}

std::string escaped_data(const nlohmann::ordered_json& data) {
  using Json = nlohmann::ordered_json;
  const std::string json =
      data.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  std::string text;
  text.reserve(json.size());
  for (const char letter : json) {
    // In JSON, these occur only inside strings.
    switch (letter) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      default:
        text += letter;
    }
  }
  return text;
}

// Fills the template's marks from front to back, so that a mark in a filled-in text is not filled.
std::string page(std::string_view title, std::string_view answer,
                 const nlohmann::ordered_json& data) {
  const std::pair<std::string_view, std::string> marks[] = {{"{{title}}", escaped_html(title)},
                                                            {"{{css}}", kPageCss},
                                                            {"{{heading}}", escaped_html(title)},
                                                            {"{{answer}}", escaped_html(answer)},
                                                            {"{{data}}", escaped_data(data)},
                                                            {"{{tools}}", kPageTools},
                                                            {"{{js}}", kPageJs}};
  std::string text;
  std::string_view rest = kPageHtml;
  for (const auto& [mark, filled] : marks) {
    const std::size_t at = rest.find(mark);
    text.append(rest.substr(0, at)).append(filled);
    rest.remove_prefix(at + mark.size());
  }
  return text.append(rest);
}

}  // namespace ferry::cli
