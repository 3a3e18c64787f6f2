# LibTorch from the PyTorch wheel, as imported targets of our own: no CUDA toolkit is needed to
# compile against c10::cuda, and none to start (find_package(Torch) would look for both).
#
#   ferry_torch        torch, torch_cpu, c10
#   ferry_torch_cuda   the same with torch_cuda, c10_cuda and the CUDA runtime's headers
#
# FERRY_TORCH is the wheel's `torch` folder; `./dev` installs one and says so. Without it (or OFF)
# what needs LibTorch is not built, and the rest is as before. Sets FERRY_TORCH_MINOR ("2.11").

# Those that Ferry is written for: 2.13 has another Node and another DebugInfoKind. ./dev installs
# 2.11.0, which the tests run with.
set(FERRY_TORCH_OLDEST 2.8)
set(FERRY_TORCH_NEWEST 2.12)
set(FERRY_TORCH "" CACHE STRING "The `torch` folder of an installed PyTorch wheel, or OFF")

if(NOT FERRY_TORCH)
  message(STATUS "ferry: no LibTorch (FERRY_TORCH)")
  return()
endif()
if(NOT EXISTS ${FERRY_TORCH}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "FERRY_TORCH=${FERRY_TORCH}: no lib/libtorch_cpu.so there; expected the "
                      "`torch` folder of an installed PyTorch wheel")
endif()
file(STRINGS ${FERRY_TORCH}/version.py ferry_torch_found REGEX "^__version__")
# Of this minor version is what is built: none of LibTorch's C++ is the same in the next.
string(REGEX MATCH "[0-9]+\\.[0-9]+" FERRY_TORCH_MINOR "${ferry_torch_found}")
if(NOT FERRY_TORCH_MINOR
   OR FERRY_TORCH_MINOR VERSION_LESS FERRY_TORCH_OLDEST
   OR FERRY_TORCH_MINOR VERSION_GREATER FERRY_TORCH_NEWEST)
  message(FATAL_ERROR "FERRY_TORCH=${FERRY_TORCH}: ${ferry_torch_found}; Ferry is written for "
                      "torch ${FERRY_TORCH_OLDEST} to ${FERRY_TORCH_NEWEST}")
elseif(DEFINED FERRY_TORCH_BUILT AND NOT FERRY_TORCH_BUILT STREQUAL FERRY_TORCH_MINOR)
  message(FATAL_ERROR "FERRY_TORCH=${FERRY_TORCH}: ${ferry_torch_found}; this Ferry was built for "
                      "torch ${FERRY_TORCH_BUILT}")
endif()

cmake_path(GET FERRY_TORCH PARENT_PATH ferry_site)
set(ferry_nvidia ${ferry_site}/nvidia/cu13)

add_library(ferry_torch INTERFACE IMPORTED GLOBAL)
target_include_directories(ferry_torch SYSTEM INTERFACE
  ${FERRY_TORCH}/include ${FERRY_TORCH}/include/torch/csrc/api/include)
target_link_directories(ferry_torch INTERFACE ${FERRY_TORCH}/lib)
# The libraries find the wheel's other libraries by an rpath of their own. Our module is told where
# they are by Python, on machines where this folder is none.
target_link_options(ferry_torch INTERFACE -Wl,--allow-shlib-undefined)
if(NOT FERRY_PYTHON_ONLY)
  target_link_options(ferry_torch INTERFACE -Wl,-rpath,${FERRY_TORCH}/lib)
endif()
# LibTorch has parts of a newer libstdc++ in it, and shows them. A build for old systems has its
# own, which it is to find first (cmake/oldest_glibc.cmake).
target_link_libraries(ferry_torch INTERFACE $<$<BOOL:${FERRY_SYSROOT}>:stdc++> torch_cpu c10)

if(EXISTS ${FERRY_TORCH}/lib/libtorch_cuda.so AND EXISTS ${ferry_nvidia}/include/cuda_runtime_api.h)
  add_library(ferry_torch_cuda INTERFACE IMPORTED GLOBAL)
  target_include_directories(ferry_torch_cuda SYSTEM INTERFACE ${ferry_nvidia}/include)
  # Registration alone: no symbol of ours need refer to torch_cuda.
  target_link_libraries(ferry_torch_cuda INTERFACE
    ferry_torch -Wl,--push-state,--no-as-needed torch_cuda c10_cuda -Wl,--pop-state
    ${ferry_nvidia}/lib/libcudart.so.13)
elseif(EXISTS ${FERRY_TORCH}/lib/libtorch_cuda.so)
  message(STATUS "ferry: no headers of CUDA 13 in ${ferry_nvidia}: without CUDA")
endif()
