# Programs that run on another machine than the one that built them: FERRY_PORTABLE links what comes
# from Debian's packages into them, so that of shared libraries they need the system's alone, and
# LibTorch's where they use it.
option(FERRY_PORTABLE "Programs need no library of Debian's packages" OFF)

# ferry_portable(PROGRAM): it has its own C++ library as well. Not for what links LibTorch, which
# has the system's: two in one process free each other's memory.
function(ferry_portable program)
  if(FERRY_PORTABLE)
    target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# Formatted text and TOML. Debian has them as shared libraries alone; their headers do as
# well.
add_library(ferry_text INTERFACE)
add_library(ferry_toml INTERFACE)
if(FERRY_PORTABLE)
  target_link_libraries(ferry_text INTERFACE fmt::fmt-header-only)
  target_compile_definitions(ferry_toml INTERFACE TOML_HEADER_ONLY=1)
else()
  target_link_libraries(ferry_text INTERFACE fmt::fmt)
  target_link_libraries(ferry_toml INTERFACE tomlplusplus::tomlplusplus)
endif()
