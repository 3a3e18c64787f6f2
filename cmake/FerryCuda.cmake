# The CUDA Toolkit, where there is one: nvcc compiles our own kernels (.cu). Without it, or where it
# is of another major version than LibTorch's CUDA, what uses them does with LibTorch's. The headers
# (the runtime's, NVTX's) are the wheel's in any case, for they fit its libraries.
#
# Sets FERRY_NVCC.
set(FERRY_NVCC OFF)
find_package(CUDAToolkit QUIET)
if(NOT CUDAToolkit_FOUND)
  message(STATUS "ferry: no CUDA Toolkit: without kernels of our own")
  return()
endif()
file(STRINGS ${ferry_cuda_headers}/cuda_runtime_api.h ferry_cudart REGEX "define CUDART_VERSION")
string(REGEX MATCH "[0-9]+" ferry_cudart "${ferry_cudart}")
math(EXPR ferry_cudart "${ferry_cudart} / 1000")
if(NOT ferry_cudart EQUAL CUDAToolkit_VERSION_MAJOR)
  message(STATUS "ferry: CUDA Toolkit ${CUDAToolkit_VERSION}, but LibTorch's CUDA is "
                 "${ferry_cudart}: without kernels of our own")
  return()
endif()
# Turing to Hopper as machine code, and what comes after from PTX.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90)
endif()
set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
set(CMAKE_CUDA_RUNTIME_LIBRARY None) # the wheel's, which ferry_torch_cuda links
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(FERRY_NVCC ON)
message(STATUS "ferry: CUDA Toolkit ${CUDAToolkit_VERSION}")
