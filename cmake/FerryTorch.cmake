# LibTorch from the PyTorch wheel, as imported targets of our own: no CUDA toolkit is needed to
# compile against c10::cuda, and none to start (find_package(Torch) would look for both).
#
#   ferry_torch        torch, torch_cpu, c10
#   ferry_torch_cuda   the same with torch_cuda, c10_cuda and the CUDA runtime's headers
#
# FERRY_TORCH is the wheel's `torch` folder; `./dev` installs one and says so. Without it, or with
# another version, nothing in real/ is built and the rest is as before.
set(FERRY_TORCH_VERSION 2.11.0)
set(FERRY_TORCH "" CACHE PATH "The `torch` folder of an installed PyTorch wheel")

if(NOT FERRY_TORCH)
  message(STATUS "ferry: no LibTorch (FERRY_TORCH): real/ is not built")
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

add_library(ferry_torch INTERFACE)
target_include_directories(ferry_torch SYSTEM INTERFACE
  ${FERRY_TORCH}/include ${FERRY_TORCH}/include/torch/csrc/api/include)
target_link_directories(ferry_torch INTERFACE ${FERRY_TORCH}/lib)
# The libraries find the wheel's other libraries by an rpath of their own.
target_link_options(ferry_torch INTERFACE -Wl,-rpath,${FERRY_TORCH}/lib
                    -Wl,--allow-shlib-undefined)
target_link_libraries(ferry_torch INTERFACE torch_cpu c10)

if(EXISTS ${FERRY_TORCH}/lib/libtorch_cuda.so AND EXISTS ${ferry_nvidia}/include/cuda_runtime_api.h)
  add_library(ferry_torch_cuda INTERFACE)
  target_include_directories(ferry_torch_cuda SYSTEM INTERFACE ${ferry_nvidia}/include)
  # Registration alone: no symbol of ours need refer to torch_cuda.
  target_link_libraries(ferry_torch_cuda INTERFACE
    ferry_torch -Wl,--push-state,--no-as-needed torch_cuda c10_cuda -Wl,--pop-state
    ${ferry_nvidia}/lib/libcudart.so.13)
endif()

# One precompiled header for everything that includes LibTorch: a file costs 2 s in place of 12.
add_library(ferry_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
target_link_libraries(ferry_torch_pch PRIVATE ferry_torch ferry_warnings)
target_precompile_headers(ferry_torch_pch PRIVATE <torch/torch.h>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ferry_torch INTERFACE -fpch-preprocess) # or ccache cannot read it
endif()

# ferry_room(ROOM [DEPENDS libraries its headers use] [PRIVATE libraries its sources use]): the
# library ferry_real_ROOM of real/ROOM/*.cpp; nothing where the room is empty.
function(ferry_room room)
  cmake_parse_arguments(ARG "" "" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/real/${room}/*.cpp)
  if(NOT sources)
    add_library(ferry_real_${room} INTERFACE)
    target_link_libraries(ferry_real_${room} INTERFACE ferry_torch ${ARG_DEPENDS})
    return()
  endif()
  add_library(ferry_real_${room} STATIC ${sources})
  target_link_libraries(ferry_real_${room} PUBLIC ferry_torch ${ARG_DEPENDS}
                                           PRIVATE ferry_warnings ${ARG_PRIVATE})
  target_precompile_headers(ferry_real_${room} REUSE_FROM ferry_torch_pch)
endfunction()
