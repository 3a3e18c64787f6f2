// The page itself: one HTML file that needs nothing else, with its data as JSON in it.
//
// The template (page.html, page.css, page_tools.js, page.js) is compiled in. Names may be
// anybody's: in the text they are escaped as HTML asks, and in the data so that nothing in it can
// end the script element (every `<`, `>` and `&` is written \u003c …, every letter beyond ASCII
// likewise). The script puts texts into the page as text, never as HTML.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ferry::cli {

std::string escaped_html(std::string_view text);
std::string escaped_data(const nlohmann::ordered_json& data);

// `title` and `answer` are seen without the script as well.
std::string page(std::string_view title, std::string_view answer,
                 const nlohmann::ordered_json& data);

}  // namespace ferry::cli
