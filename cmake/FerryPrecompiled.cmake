# Two precompiled headers, the tensors alone and all of LibTorch: a file costs 2 or 8 s of what the
# compiler has to instantiate, in place of 9 or 22.
foreach(pch aten torch)
  add_library(ferry_${pch}_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(ferry_${pch}_pch PRIVATE ferry_torch ferry_warnings)
endforeach()
target_precompile_headers(ferry_aten_pch PRIVATE <ATen/ATen.h>)
target_precompile_headers(ferry_torch_pch PRIVATE <torch/torch.h>)

# ferry_use_pch(TARGET aten|torch)
function(ferry_use_pch target pch)
  target_precompile_headers(${target} REUSE_FROM ferry_${pch}_pch)
endfunction()
