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
file(COPY ${SOURCE}/examples/offload DESTINATION ${WORK})
run(${CMAKE_COMMAND} -S ${WORK}/offload -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DFERRY_TORCH=${TORCH}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/offload)
if(NOT output MATCHES "moved [1-9][0-9]* KiB to the host and [1-9][0-9]* KiB back")
  message(FATAL_ERROR "the example printed:\n${output}")
endif()
