// Finds and lists the shipped programs, scenarios/programs/NAME.jsonl. A list reads only the
// headers; formats/program_file.h reads a program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/paths.h"

namespace ferry {

struct ShippedProgram {
  std::string name;  // the file's name
  std::filesystem::path path;
  std::string description;  // one line, from the header's "about"
};

std::filesystem::path find_program(const std::string& name_or_path);
// Returns the shipped programs, sorted by name. For a header that cannot be read, calls
// `unreadable` with the error, and goes on.
std::vector<ShippedProgram> list_programs(const Unreadable& unreadable);

}  // namespace ferry
