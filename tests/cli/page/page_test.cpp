#include "cli/page/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ferry::cli {
namespace {

using Json = nlohmann::ordered_json;

TEST(PageTest, TextIsEscapedAsHtmlAsks) {
  EXPECT_EQ(escaped_html("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
}

TEST(PageTest, DataReadsAsItWasAndEndsNoElement) {
  const Json data = {{"</script>&", {"<!--", "\u2028\u00e9", "quote \" and \\", "\xff"}}};
  const std::string text = escaped_data(data);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  for (const char letter : text) EXPECT_GE(letter, ' ');
  const Json read = Json::parse(text);
  EXPECT_EQ(read.at("</script>&")[0], "<!--");
  EXPECT_EQ(read.at("</script>&")[1], "\u2028\u00e9");
  EXPECT_EQ(read.at("</script>&")[3], "\ufffd");  // no UTF-8
}

TEST(PageTest, WhatIsFilledInIsNoMark) {
  const std::string html = page("{{answer}}", "{{data}}{{js}}", {{"text", "{{tools}}{{js}}"}});
  EXPECT_NE(html.find("<h1>{{answer}}</h1>"), std::string::npos);
  EXPECT_NE(html.find("<p class=\"answer\">{{data}}{{js}}</p>"), std::string::npos);
  EXPECT_NE(html.find("{\"text\":\"{{tools}}{{js}}\"}"), std::string::npos);
}

}  // namespace
}  // namespace ferry::cli
