# What every target of ours has in common: warnings as errors, sanitizers, include root.

add_library(ferry_warnings INTERFACE)
target_compile_options(ferry_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                                                -Werror)

# Tests meet macros and templates of gtest and RapidCheck: no -Wconversion and -Wshadow there.
add_library(ferry_test_warnings INTERFACE)
target_compile_options(ferry_test_warnings INTERFACE -Wall -Wextra -Wpedantic -Werror)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 and 13 see overlaps in `"literal" + std::string` that are none (GCC bug 105651).
  target_compile_options(ferry_warnings INTERFACE -Wno-restrict)
  # ... and shared pointers that are not initialised, in temporaries that are (GCC bug 80635's kin).
  target_compile_options(ferry_test_warnings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()

if(FERRY_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "ferry: FERRY_FUZZ needs clang, for libFuzzer")
  endif()
  set(FERRY_SANITIZE fuzzer-no-link,address,undefined)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

if(FERRY_SANITIZE)
  add_compile_options(-fsanitize=${FERRY_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FERRY_SANITIZE})
  if(FERRY_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code hides from GCC what it needs to know for this one.
    add_compile_options(-Wno-error=maybe-uninitialized)
  endif()
endif()

# The root of our includes: the tree's, and of what is installed.
set(ferry_include_root $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/ferry>)

# ferry_library(FOLDER [NAME name] [DEPENDS libraries its headers use] [PRIVATE libraries its sources
# use]): the library ferry_NAME, by default named as the folder.
function(ferry_library folder)
  cmake_parse_arguments(ARG "" "NAME" "DEPENDS;PRIVATE" ${ARGN})
  if(ARG_NAME)
    set(name ${ARG_NAME})
  else()
    set(name ${folder})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  if(sources)
    add_library(ferry_${name} STATIC ${sources})
    target_include_directories(ferry_${name} PUBLIC ${ferry_include_root})
    target_link_libraries(
      ferry_${name}
      PUBLIC ${ARG_DEPENDS}
      PRIVATE $<BUILD_INTERFACE:ferry_warnings> ${ARG_PRIVATE})
  else()
    add_library(ferry_${name} INTERFACE)
    target_include_directories(ferry_${name} INTERFACE ${ferry_include_root})
    target_link_libraries(ferry_${name} INTERFACE ${ARG_DEPENDS})
  endif()
endfunction()

# ferry_define(FOLDER DEFINITION...): for the folder's own sources, where it has some.
function(ferry_define folder)
  get_target_property(type ferry_${folder} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    target_compile_definitions(ferry_${folder} PRIVATE ${ARGN})
  endif()
endfunction()
