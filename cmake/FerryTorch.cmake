# LibTorch from the PyTorch wheel, as imported targets of our own: no CUDA toolkit is needed to
# compile against c10::cuda, and none to start (find_package(Torch) would look for both).
#
#   ferry_torch        torch, torch_cpu, c10
#   ferry_torch_cuda   the same with torch_cuda, c10_cuda and the CUDA runtime's headers
#
# FERRY_TORCH is the wheel's `torch` folder; `./dev` installs one and says so. Without it (or OFF)
# what needs LibTorch is not built, and the rest is as before.
set(FERRY_TORCH_VERSION 2.11.0)
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
if(NOT ferry_torch_found MATCHES "'${FERRY_TORCH_VERSION}")
  message(FATAL_ERROR "FERRY_TORCH=${FERRY_TORCH}: ${ferry_torch_found}; expected version "
                      "${FERRY_TORCH_VERSION}")
endif()

cmake_path(GET FERRY_TORCH PARENT_PATH ferry_site)
set(ferry_nvidia ${ferry_site}/nvidia/cu13)

add_library(ferry_torch INTERFACE IMPORTED GLOBAL)
target_include_directories(ferry_torch SYSTEM INTERFACE
  ${FERRY_TORCH}/include ${FERRY_TORCH}/include/torch/csrc/api/include)
target_link_directories(ferry_torch INTERFACE ${FERRY_TORCH}/lib)
# The libraries find the wheel's other libraries by an rpath of their own.
target_link_options(ferry_torch INTERFACE -Wl,-rpath,${FERRY_TORCH}/lib
                    -Wl,--allow-shlib-undefined)
target_link_libraries(ferry_torch INTERFACE torch_cpu c10)

if(EXISTS ${FERRY_TORCH}/lib/libtorch_cuda.so AND EXISTS ${ferry_nvidia}/include/cuda_runtime_api.h)
  add_library(ferry_torch_cuda INTERFACE IMPORTED GLOBAL)
  target_include_directories(ferry_torch_cuda SYSTEM INTERFACE ${ferry_nvidia}/include)
  # Registration alone: no symbol of ours need refer to torch_cuda.
  target_link_libraries(ferry_torch_cuda INTERFACE
    ferry_torch -Wl,--push-state,--no-as-needed torch_cuda c10_cuda -Wl,--pop-state
    ${ferry_nvidia}/lib/libcudart.so.13)
endif()
