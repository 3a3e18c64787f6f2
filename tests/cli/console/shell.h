// A command line run by the shell: its exit code, and what it wrote.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "formats/text_file.h"

namespace ferry::cli {

struct Result {
  int code = 0;
  std::string out;
  std::string err;
};

// stdout and stderr go through files of that stem, which are gone at the end.
inline Result shell(const std::string& command, const std::string& stem) {
  const std::string line = "(" + command + ") >" + stem + ".out 2>" + stem + ".err </dev/null";
  const int status = std::system(line.c_str());
  Result result{WEXITSTATUS(status), read_file(stem + ".out"), read_file(stem + ".err")};
  for (const char* const end : {".out", ".err"}) std::filesystem::remove(stem + end);
  return result;
}

}  // namespace ferry::cli
