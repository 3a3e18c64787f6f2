# Cross-compiles for aarch64 with Debian's compiler (g++-aarch64-linux-gnu), and runs tests under
# qemu-user: what needs no LibTorch. FERRY_AARCH64 in the environment is the root of a Debian for
# arm64 with the libraries that Ferry needs (docs/installing.md says how one gets it).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
if(NOT EXISTS "$ENV{FERRY_AARCH64}/usr/include/stdio.h")
  message(FATAL_ERROR "FERRY_AARCH64=$ENV{FERRY_AARCH64}: expected the root of a Debian for arm64")
endif()
set(CMAKE_SYSROOT $ENV{FERRY_AARCH64})
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
