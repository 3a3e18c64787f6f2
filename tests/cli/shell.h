// A command line run by the shell: its exit code, and what it wrote.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "formats/text_file.h"

namespace ferry::cli {

struct Result {
  int code = 0;
  std::string out;
  std::string err;
};

// stdout and stderr go through files of that stem.
inline Result shell(const std::string& command, const std::string& stem) {
  const std::string line = "(" + command + ") >" + stem + ".out 2>" + stem + ".err </dev/null";
  const int status = std::system(line.c_str());
  return {WEXITSTATUS(status), read_file(stem + ".out"), read_file(stem + ".err")};
}

}  // namespace ferry::cli
