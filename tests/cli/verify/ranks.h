// `ferry verify`, alone or as ranks of MPI.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/cli/console/shell.h"

namespace ferry::cli {

inline std::filesystem::path verify_file(const std::string& name) {
  return std::filesystem::path(::testing::TempDir()) /
         ("ferry_ranks_" + std::to_string(getpid()) + name);
}

inline Result verify(const std::string& launcher, const std::string& arguments) {
  return shell(launcher + " '" FERRY_PROGRAM "' verify " + arguments, verify_file("").string());
}

#ifdef FERRY_MPIRUN

inline std::string mpirun(int ranks) {
  // Where a rank ends with another code than 0, mpirun waits before it kills the others.
  return FERRY_MPIRUN " --mca odls_base_sigkill_timeout 0 --allow-run-as-root --oversubscribe -n " +
         std::to_string(ranks);
}

#endif

}  // namespace ferry::cli
