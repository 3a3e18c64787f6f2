# Precompiled headers, the tensors alone and all of LibTorch: a file costs 2 or 8 s of what the
# compiler has to instantiate, in place of 9 or 22.

# ferry_pch(NAME HEADERS...): with the options of the folder that it is called in.
function(ferry_pch pch)
  add_library(ferry_${pch}_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(ferry_${pch}_pch PRIVATE ferry_torch ferry_warnings)
  target_precompile_headers(ferry_${pch}_pch PRIVATE ${ARGN})
endfunction()
ferry_pch(aten <ATen/ATen.h>)
ferry_pch(torch <torch/torch.h>)

# ferry_use_pch(TARGET NAME): of the same options; four files at a time.
function(ferry_use_pch target pch)
  target_precompile_headers(${target} REUSE_FROM ferry_${pch}_pch)
  ferry_four_at_a_time(${target})
endfunction()

# What is compiled more often than it runs is not optimised, and compiled in half the time: tests,
# and where they are built the programs that train and calibrate. (What a sanitizer makes slow is.)
if(FERRY_TESTS AND NOT FERRY_SANITIZE)
  set(ferry_quick _quick)
  ferry_pch(aten_quick <ATen/ATen.h>)
  ferry_pch(torch_quick <torch/torch.h>)
  target_compile_options(ferry_aten_quick_pch PRIVATE -O0)
  target_compile_options(ferry_torch_quick_pch PRIVATE -O0)
endif()

# ferry_use_quick_pch(TARGET aten|torch)
function(ferry_use_quick_pch target pch)
  ferry_use_pch(${target} ${pch}${ferry_quick})
  if(ferry_quick)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()
