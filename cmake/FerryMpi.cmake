# Sweeps and campaigns over MPI, where it is installed (Debian: libopenmpi-dev). Ferry is whole
# without it, and with it runs alone as well. Not for programs that other machines run, which may
# have another MPI or none, and not under sanitizers, which take MPI's own habits for faults.
set(FERRY_MPI "" CACHE STRING "Over MPI, where there is one (or OFF)")

add_library(ferry_mpi INTERFACE)
set(FERRY_HAS_MPI 0)
if(FERRY_MPI STREQUAL "" AND NOT FERRY_PORTABLE AND NOT FERRY_SANITIZE)
  set(MPI_CXX_SKIP_MPICXX ON) # C's interface alone
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(FERRY_HAS_MPI 1)
    target_link_libraries(ferry_mpi INTERFACE MPI::MPI_CXX)
  endif()
endif()
target_compile_definitions(ferry_mpi INTERFACE FERRY_HAS_MPI=${FERRY_HAS_MPI})
