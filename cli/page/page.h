// The page of `ferry report`: one HTML file that needs no network, with its data in it as JSON.
//
// The template (page.html, page.css, page_tools.js, page.js) is compiled in. Names can come from
// files that anybody wrote. In the text they are escaped for HTML. In the data, `<`, `>`, `&` and
// all letters beyond ASCII are written as \u003c …, so that nothing can end the script element.
// The script puts texts into the page as text, never as HTML.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ferry::cli {

std::string escaped_html(std::string_view text);
std::string escaped_data(const nlohmann::ordered_json& data);

// `title` and `answer` are visible even if scripts are switched off.
std::string page(std::string_view title, std::string_view answer,
                 const nlohmann::ordered_json& data);

}  // namespace ferry::cli
