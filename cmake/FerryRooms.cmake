# What every target that includes LibTorch has in common.

# Two precompiled headers, the tensors alone and all of LibTorch: a file costs 2 or 8 s of what the
# compiler has to instantiate, in place of 9 or 22.
foreach(pch aten torch)
  add_library(ferry_${pch}_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
  target_link_libraries(ferry_${pch}_pch PRIVATE ferry_torch ferry_warnings)
endforeach()
target_precompile_headers(ferry_aten_pch PRIVATE <ATen/ATen.h>)
target_precompile_headers(ferry_torch_pch PRIVATE <torch/torch.h>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ferry_torch INTERFACE -fpch-preprocess) # or ccache cannot read it
endif()

# ferry_use_pch(TARGET aten|torch)
function(ferry_use_pch target pch)
  target_precompile_headers(${target} REUSE_FROM ferry_${pch}_pch)
endfunction()

# ferry_room(ROOM aten|torch [DEPENDS libraries its headers use] [PRIVATE libraries its sources use]): the
# library ferry_real_ROOM of real/ROOM/*.cpp.
function(ferry_room room pch)
  cmake_parse_arguments(ARG "" "" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/real/${room}/*.cpp)
  add_library(ferry_real_${room} STATIC ${sources})
  target_link_libraries(ferry_real_${room} PUBLIC ferry_torch ${ARG_DEPENDS}
                                           PRIVATE $<BUILD_INTERFACE:ferry_warnings>
                                                   ${ARG_PRIVATE})
  ferry_use_pch(ferry_real_${room} ${pch})
endfunction()
