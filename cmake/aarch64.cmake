# Toolchain: builds for Linux on aarch64 (GH200, GB200) on an x86-64 machine, without LibTorch. The
# tests run under qemu-user, which is slow and no such machine. Needs the packages
# g++-aarch64-linux-gnu and qemu-user, and a root of Debian 12 for arm64 with the libraries:
#
#   debootstrap --arch=arm64 --foreign --variant=minbase --include=libc6-dev,libstdc++-12-dev,\
#     libfmt-dev,librapidcheck-dev,libgtest-dev,libxxhash-dev,libcli11-dev,libtomlplusplus-dev,\
#     nlohmann-json3-dev,libbenchmark-dev,libjemalloc-dev bookworm ROOT
#   for package in ROOT/var/cache/apt/archives/*.deb; do dpkg-deb -x $package ROOT; done
#   cmake --preset dev -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake \
#     -DFERRY_AARCH64_ROOT=ROOT -DFERRY_TORCH=OFF -DFERRY_BENCH=OFF
set(FERRY_AARCH64_ROOT "" CACHE PATH "A root of Debian for arm64")
if(NOT EXISTS ${FERRY_AARCH64_ROOT}/usr/include)
  message(FATAL_ERROR "ferry: FERRY_AARCH64_ROOT: expected a root of Debian for arm64, as "
                      "cmake/aarch64.cmake says")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FERRY_AARCH64_ROOT)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_SYSROOT ${FERRY_AARCH64_ROOT})
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})
