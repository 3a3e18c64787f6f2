# LibTorch from the PyTorch wheel, as imported targets of our own: no CUDA toolkit is needed to
# compile against c10::cuda, and none to start (find_package(Torch) would look for both).
#
#   ferry_torch        torch, torch_cpu, c10
#   ferry_torch_python the same with torch_python
#   ferry_torch_cuda   the same with torch_cuda, c10_cuda and the CUDA runtime's headers
#
# FERRY_TORCH is the wheel's `torch` folder; `./dev` installs one and says so. Without it (or OFF)
# what needs LibTorch is not built, and the rest is as before. Sets FERRY_TORCH_MINOR ("2.11").

# Those that Ferry is written for. ./dev installs one of them, which the tests run with.
set(FERRY_TORCH_OLDEST 2.10)
set(FERRY_TORCH_NEWEST 2.15)
set(FERRY_TORCH "" CACHE STRING "The `torch` folder of an installed PyTorch wheel, or OFF")
set(FERRY_CUDA_HEADERS "" CACHE STRING "CUDA 13's headers, where the wheels beside torch have none")

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
# CUDA's headers, and its runtime for programs. What is loaded by a Python process needs neither's
# version: it finds the runtime that torch has loaded, of CUDA 12 or 13.
set(ferry_cuda_headers ${FERRY_CUDA_HEADERS})
if(NOT ferry_cuda_headers)
  set(ferry_cuda_headers ${ferry_site}/nvidia/cu13/include)
endif()
file(GLOB ferry_cudart ${ferry_site}/nvidia/cu13/lib/libcudart.so.13
     ${ferry_site}/nvidia/cuda_runtime/lib/libcudart.so.12)

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
add_library(ferry_torch_python INTERFACE IMPORTED GLOBAL)
target_link_libraries(ferry_torch_python INTERFACE $<$<BOOL:${FERRY_SYSROOT}>:-lstdc++>
                                                   torch_python ferry_torch)

if(EXISTS ${FERRY_TORCH}/lib/libtorch_cuda.so AND EXISTS ${ferry_cuda_headers}/cublas_v2.h)
  add_library(ferry_torch_cuda INTERFACE IMPORTED GLOBAL)
  target_include_directories(ferry_torch_cuda SYSTEM INTERFACE ${ferry_cuda_headers})
  # Registration alone: no symbol of ours need refer to torch_cuda.
  target_link_libraries(ferry_torch_cuda INTERFACE
    ferry_torch -Wl,--push-state,--no-as-needed torch_cuda c10_cuda -Wl,--pop-state
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${ferry_cudart}>)
elseif(EXISTS ${FERRY_TORCH}/lib/libtorch_cuda.so)
  message(STATUS "ferry: no headers of CUDA 13 in ${ferry_cuda_headers}: without CUDA")
endif()
