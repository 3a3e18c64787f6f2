// The page's template, from the files beside this one (cmake/FerryPage.cmake makes the source).
#pragma once

namespace ferry::cli {

extern const char* const kPageHtml;
extern const char* const kPageCss;
extern const char* const kPageTools;  // of the script
extern const char* const kPageJs;

}  // namespace ferry::cli
