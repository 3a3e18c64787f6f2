// The template of the page of `ferry report` (page.h), compiled into the program so that no file
// must be found when it runs. cmake/FerryPage.cmake makes the source from the files in this folder.
#pragma once

namespace ferry::cli {

extern const char* const kPageHtml;
extern const char* const kPageCss;
extern const char* const kPageTools;  // the first part of the script
extern const char* const kPageJs;

}  // namespace ferry::cli
