# What every target of ours has in common: warnings and sanitizers.

add_library(ferry_warnings INTERFACE)
target_compile_options(ferry_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)

# Tests meet macros and templates of gtest and RapidCheck: no -Wconversion and -Wshadow there.
add_library(ferry_test_warnings INTERFACE)
target_compile_options(ferry_test_warnings INTERFACE -Wall -Wextra -Wpedantic)

# A compiler that we have not met may know warnings that we have not: they stop CI alone.
if(FERRY_WERROR)
  target_compile_options(ferry_warnings INTERFACE -Werror)
  target_compile_options(ferry_test_warnings INTERFACE -Werror)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Or ccache cannot read what uses a precompiled header.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
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
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${FERRY_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${FERRY_SANITIZE})
  if(FERRY_SANITIZE MATCHES "undefined")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code hides from GCC what it needs to know for this one.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-error=maybe-uninitialized>)
  endif()
endif()

# ferry_jemalloc(PROGRAM): with that allocator, for a quarter of what a simulation does is to make
# and drop small objects. A sanitizer has one of its own.
find_library(FERRY_JEMALLOC libjemalloc_pic.a)
if(FERRY_COMMAND AND NOT FERRY_JEMALLOC)
  message(STATUS "ferry: no jemalloc (libjemalloc-dev): `ferry` simulates slower")
endif()
function(ferry_jemalloc program)
  if(FERRY_JEMALLOC AND NOT FERRY_SANITIZE)
    target_link_libraries(${program} PRIVATE ${FERRY_JEMALLOC} Threads::Threads ${CMAKE_DL_LIBS} m)
  endif()
endfunction()

# ferry_some_at_a_time(TARGET COUNT): so many files are compiled as one, for much of a file's time
# is what the compiler instantiates of LibTorch, gtest or the core, whatever is in the file. So
# their unnamed namespaces are one as well: no two of its files may give one name to different
# things. clang-tidy and the makers of mutants ask how one file of a room is compiled.
function(ferry_some_at_a_time target count)
  if(target MATCHES "^ferry_" AND (CMAKE_DISABLE_PRECOMPILE_HEADERS OR FERRY_MUTATION))
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
endfunction()
function(ferry_four_at_a_time target)
  ferry_some_at_a_time(${target} 4)
endfunction()
