# The template of `ferry report` as a source: each file a raw string. None may have the two letters
# that begin one of CMake's generator expressions.
set(ferry_page_source ${PROJECT_BINARY_DIR}/page_template.cpp)
set(ferry_page_text "#include \"cli/page/page_template.h\"\n\nnamespace ferry::cli {\n\n")
foreach(part Html:page.html Css:page.css Tools:page_tools.js Js:page.js)
  string(REGEX REPLACE ".*:" "${PROJECT_SOURCE_DIR}/cli/page/" ferry_page_file ${part})
  string(REGEX REPLACE ":.*" "" part ${part})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ferry_page_file})
  file(READ ${ferry_page_file} content)
  string(APPEND ferry_page_text
         "const char* const kPage${part} = R\"ferry_page(${content})ferry_page\";\n")
endforeach()
string(APPEND ferry_page_text "\n}  // namespace ferry::cli\n")
file(GENERATE OUTPUT ${ferry_page_source} CONTENT "${ferry_page_text}")
