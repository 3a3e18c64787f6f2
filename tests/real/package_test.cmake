# Installs the build, then builds and runs a user's program against what was installed.
file(REMOVE_RECURSE ${WORK})
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# Away from the tree: what is found there only by accident is not found.
function(run_example name)
  file(COPY ${SOURCE}/examples/${name} DESTINATION ${WORK})
  run(${CMAKE_COMMAND} -S ${WORK}/${name} -B ${WORK}/build/${name} -G Ninja
      -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${WORK}/prefix -DFERRY_TORCH=${TORCH}
      -DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE} -DCMAKE_CXX_FLAGS=${FLAGS})
  run(${CMAKE_COMMAND} --build ${WORK}/build/${name})
  run(${WORK}/build/${name}/${name})
  set(output "${output}" PARENT_SCOPE)
endfunction()
run_example(offload)
if(NOT output MATCHES "moved [1-9][0-9]* KiB to the host and [1-9][0-9]* KiB back")
  message(FATAL_ERROR "the example printed:\n${output}")
endif()
run_example(pipe)

# The text that a GPT learns comes with it.
if(NOT EXISTS ${WORK}/prefix/share/ferry/text/northanger_abbey.txt)
  message(FATAL_ERROR "no text was installed")
endif()

# Nobody need name a LibTorch: it is the one that Ferry was built with or, where that is gone, the
# one that python3 imports.
function(configure name)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env ${ARGN} ${CMAKE_COMMAND} -S ${WORK}/offload
            -B ${WORK}/build/${name} -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(status "${status}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()
function(expect_found name)
  file(STRINGS ${WORK}/build/${name}/CMakeCache.txt found REGEX "^FERRY_TORCH:")
  if(NOT status EQUAL 0 OR NOT found STREQUAL "FERRY_TORCH:STRING=${TORCH}")
    message(FATAL_ERROR "${name}: expected ${TORCH}, found ${found}\n${output}")
  endif()
endfunction()
configure(of_build)
expect_found(of_build)
file(GLOB_RECURSE config ${WORK}/prefix/ferry-config.cmake)
file(READ ${config} text)
string(REPLACE "${TORCH}" "/nonexistent" text "${text}")
file(WRITE ${config} "${text}")
cmake_path(GET TORCH PARENT_PATH site)
configure(of_python PYTHONPATH=${site})
expect_found(of_python)
# Another version is not taken, and is named.
file(WRITE ${WORK}/other/torch/__init__.py "")
file(WRITE ${WORK}/other/torch/version.py "__version__ = '2.3.1'\n")
file(WRITE ${WORK}/other/torch/lib/libtorch_cpu.so "")
configure(of_other PYTHONPATH=${WORK}/other)
if(status EQUAL 0 OR NOT output MATCHES "torch has __version__ = '2.3.1'. expected ${MINOR}\\)")
  message(FATAL_ERROR "with torch 2.3.1, status ${status}:\n${output}")
endif()

# Where there is none it says what to name: it was a list, with its `;` in the sentence.
file(WRITE ${WORK}/none/torch.py "")
configure(no_torch PYTHONPATH=${WORK}/none)
if(status EQUAL 0
   OR NOT output MATCHES "set FERRY_TORCH to the `torch` folder of an installed PyTorch wheel")
  message(FATAL_ERROR "without LibTorch, status ${status}:\n${output}")
endif()

# And one for CUDA, which it asks for: without a GPU it is told that there is none, not that Ferry
# was linked without.
if(CUDA)
  file(WRITE ${WORK}/cuda/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(cuda_user LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(ferry REQUIRED COMPONENTS real)
add_executable(cuda_user main.cpp)
target_link_libraries(cuda_user PRIVATE ferry::real_cuda)
")
  file(WRITE ${WORK}/cuda/main.cpp "#include <ferry/offload.h>
#include <iostream>
int main() try {
  ferry::Offload offload(ferry::OffloadOptions().device(torch::kCUDA));
  std::cout << \"CUDA serves\";
} catch (const c10::Error& error) {
  std::cout << error.what_without_backtrace();
}
")
  run(${CMAKE_COMMAND} -S ${WORK}/cuda -B ${WORK}/cuda/build -G Ninja
      -DCMAKE_PREFIX_PATH=${WORK}/prefix -DFERRY_TORCH=${TORCH}
      -DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE} -DCMAKE_CXX_FLAGS=${FLAGS})
  run(${CMAKE_COMMAND} --build ${WORK}/cuda/build)
  run(${WORK}/cuda/build/cuda_user)
  if(NOT output MATCHES "CUDA serves|no CUDA device can be used here")
    message(FATAL_ERROR "the CUDA program printed:\n${output}")
  endif()
endif()
