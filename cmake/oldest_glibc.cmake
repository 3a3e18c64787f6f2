# Toolchain: what is built runs on Linux systems as old as Debian 10 and RHEL 8, for which PyTorch's
# wheels are (cmake/oldest/floor.py), though our compiler, its libstdc++ and our glibc are newer.
#
#   cmake -B build/oldest -DCMAKE_TOOLCHAIN_FILE=cmake/oldest_glibc.cmake -DFERRY_PORTABLE=ON ...
#   pip wheel -C cmake.define.CMAKE_TOOLCHAIN_FILE=$PWD/cmake/oldest_glibc.cmake ...
#
# cmake/oldest/sysroot.py makes the compiler's world, once, and says how. What shares its process
# with others (a module beside LibTorch) shares their libstdc++ too; a program that does not has
# its own by ferry_portable. cmake/oldest/needs.py tells what a built file needs.
if(NOT FERRY_SYSROOT)
  execute_process(
    COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/oldest/sysroot.py
    OUTPUT_VARIABLE ferry_made OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE ferry_failed)
  if(ferry_failed)
    message(FATAL_ERROR "ferry: no world of an old Linux to build in: ${ferry_failed}")
  endif()
  # A build folder keeps its own.
  set(FERRY_SYSROOT ${ferry_made} CACHE PATH "What cmake/oldest/sysroot.py made")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FERRY_SYSROOT)

set(CMAKE_SYSROOT ${FERRY_SYSROOT})
set(CMAKE_CXX_COMPILER ${FERRY_SYSROOT}/usr/bin/g++)
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
# Programs that CMake runs are this machine's, and so may be the Python that a module is for; its
# headers are where it says. LibTorch is named by its folder.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
